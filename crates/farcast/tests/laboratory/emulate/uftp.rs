//! UFTP, another project's multicast file transfer.

use std::fs;

use super::run::{Emulate, need};
use crate::common::{Place, digest};

const RECEIVERS: u32 = 3;
/// The link that ships under this name.
const BGAN: &str = include_str!("../../../../../scenarios/links/bgan.toml");

#[test]
fn uftp_delivers_a_file_to_three_receivers_behind_bgan() {
    let (server, client) = (need("uftp", "uftp"), need("uftpd", "uftp"));
    let place = Place::new();
    let file = place.file("product.bin", 200_000);
    for n in 0..RECEIVERS {
        fs::create_dir(place.path(&format!("got-{n}"))).unwrap();
    }
    let at = place.root().display();
    // Its clients are known by their addresses in hexadecimal; 10.64.0.1 is the first. It announces for four estimated
    // round trips at least; an answer over the return channel takes about two seconds.
    let text = format!(
        "receivers = {RECEIVERS}\n         [[programs]]\nname = \"client\"\non = \"terminals\"\nbackground = true\n\
         command = \"exec {client} -d -q -t -I $FARCAST_DEVICE -D {at}/got-$FARCAST_TERMINAL\"\n\
         [[programs]]\nname = \"server\"\non = \"hub\"\nstart = \"1 s\"\n\
         command = \"exec {server} -I $FARCAST_DEVICE -R 200 -r 2.0:1.0:10 -s 10 -Y none \
         -H 0x0A400001,0x0A400002,0x0A400003 {}\"\n",
        file.display()
    );
    let emulated = Emulate::toml(&place, "uftp", &(text + BGAN)).start().succeed();
    for n in 0..RECEIVERS {
        let got = digest(&place.path(&format!("got-{n}/product.bin")));
        assert!(got == digest(&file), "receiver {n}: {}", emulated.ended.story());
    }
}
