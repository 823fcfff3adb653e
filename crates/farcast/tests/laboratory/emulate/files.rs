//! File transfers through a geostationary satellite that loses packets.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::run::{Emulate, Emulated, need};
use crate::common::{Place, digest};

/// Options with a seed that loses some of the first 1,380 packets, which is as many as the file has.
const LOSSES: [&str; 6] =
    ["--seed", "5", "--set", "link.forward.per=0.001", "--set", "link.return.per=0.001"];

/// Makes a place with a file that a server offers, and with the server's other needs.
fn offer() -> Place {
    let place = Place::new();
    let offered = place.file("offered/product.bin", 2_000_000);
    fs::set_permissions(&offered, PermissionsExt::from_mode(0o644)).unwrap();
    // The FTP server reads it as a user without rights.
    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    place
}

fn assert_fetched(place: &Place, emulated: &Emulated) {
    let [offered, got] = ["offered/product.bin", "got.bin"].map(|name| digest(&place.path(name)));
    assert!(offered == got, "the file differs: {}", emulated.ended.story());
    let lost = emulated.report["forward"]["lost"]["packets"].as_u64().unwrap();
    assert!(lost > 0, "nothing was lost that TCP had to send again: {}", emulated.report["forward"]);
}

#[test]
fn curl_fetches_a_file_intact() {
    for (program, package) in [("curl", "curl"), ("python3", "python3")] {
        need(program, package);
    }
    let place = offer();
    let at = place.root().display();
    let emulated = Emulate::named(&place, "curl", "geo")
        .options(&LOSSES)
        .far(&format!("exec python3 -m http.server 8000 --directory {at}/offered"))
        .near(&format!(
            "exec curl -sSf --retry 20 --retry-delay 1 --retry-connrefused -w '%{{time_connect}}' \
             -o {at}/got.bin http://$FARCAST_PEER:8000/product.bin"
        ))
        .start()
        .succeed();
    assert_fetched(&place, &emulated);
    // A connection takes a round trip, and no way up to a geostationary satellite and down is shorter than 239 ms.
    let connected: f64 = emulated.ended.stdout.trim().parse().unwrap();
    assert!(connected > 0.478, "connected after {connected} s");
}

#[test]
fn lftp_fetches_a_file_from_vsftpd_intact() {
    let (vsftpd, lftp) = (need("vsftpd", "vsftpd"), need("lftp", "lftp"));
    let place = offer();
    let at = place.root().display();
    let settings = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nno_anon_password=YES\nanon_root={at}/offered\n\
         secure_chroot_dir={at}/empty\nxferlog_enable=NO\n"
    );
    fs::write(place.path("vsftpd.conf"), settings).unwrap();
    let script = format!(
        "set net:max-retries 20; set net:reconnect-interval-base 1
         open ftp://$FARCAST_PEER; get product.bin -o {at}/got.bin"
    );
    let emulated = Emulate::named(&place, "ftp", "geo")
        .options(&LOSSES)
        .far(&format!("exec {vsftpd} {at}/vsftpd.conf"))
        .near(&format!("LFTP_HOME={at} exec {lftp} -c \"{script}\""))
        .start()
        .succeed();
    assert_fetched(&place, &emulated);
}
