//! Says which commit the program is built from.
#![expect(clippy::print_stdout, reason = "what is printed is what cargo is told")]

mod commit;

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    // Without these lines cargo would run this again for any change in the package, as its tests.
    println!("cargo::rerun-if-changed=build");
    if let Some(commit) = commit::of(&root, &commit::sources(&root)) {
        version = format!("{version} ({})", commit.name);
        for path in commit.watched {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rustc-env=FARCAST_VERSION={version}");
}
