use std::path::Path;

use farcast_core::{Among, Time};

use super::*;
use crate::document::Document;
use crate::links::Links;

const LINK: &str = "[link.forward]\nerror_vector_file = \"lost.txt\"\n";

fn read(document: &Document) -> Result<LossSpec, DocumentError> {
    let mut top = document.root();
    let links = Links::read(&mut top)?;
    top.finish()?;
    Ok(links.losses)
}

/// Returns the losses among the next eight packets to one receiver.
fn lost(document: &Document) -> String {
    let losses = read(document).unwrap_or_else(|error| panic!("{error}"));
    let mut losses = losses.make(0, 1, RandomStream::derive(1, &[]));
    let mut one = |_| {
        let mut who = Vec::new();
        losses.draw(Time::ZERO, 1000, Among::All, &mut who);
        if who.is_empty() { '0' } else { '1' }
    };
    (0..8).map(&mut one).collect()
}

/// Temporary directory of a test, with two files of vectors.
struct TestDirectory(std::path::PathBuf);

impl TestDirectory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("farcast-error-vectors-{}", std::process::id()));
        std::fs::create_dir_all(path.join("below")).expect("a new directory");
        std::fs::write(path.join("lost.txt"), "0010\n").expect("a new file");
        std::fs::write(path.join("below/lost.txt"), "01\n").expect("a new file");
        Self(path)
    }

    fn document(&self, name: &str) -> Document {
        Document::parse(self.0.join(name).to_str().expect("UTF-8"), LINK).expect("TOML")
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed stays among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_error_vector_file_lies_beside_the_document_and_that_of_an_assignment_where_the_program_runs() {
    let place = TestDirectory::new();
    let mut document = place.document("link.toml");
    assert_eq!(lost(&document), "00100010");
    assert_eq!(lost(&place.document("below/link.toml")), "01010101");
    // An absolute path is taken unchanged.
    let path = place.0.join("below/lost.txt");
    document.set(&format!("link.forward.error_vector_file={}", path.display())).expect("an assignment");
    assert_eq!(lost(&document), "01010101");

    document.set("link.forward.error_vector_file=lost.txt").expect("an assignment");
    let error = read(&document).expect_err("tests run elsewhere").to_string();
    let told = "--set link.forward.error_vector_file=lost.txt: link.forward.error_vector_file: lost.txt: No such file";
    assert!(error.starts_with(told), "{error}");
    // Tests run in the directory of their crate. The path is that of this file, which is no vector: it begins with a
    // comment.
    assert!(Path::new("src/links/losses.rs").exists());
    document.set("link.forward.error_vector_file=src/links/losses.rs").expect("an assignment");
    let error = read(&document).expect_err("no vector").to_string();
    assert!(error.contains("an error vector holds '/'"), "{error}");
}

#[test]
fn an_attached_error_vector_file_needs_no_disk() {
    let mut document = Document::parse("nowhere/link.toml", LINK).expect("TOML");
    let error = read(&document).expect_err("there is none").to_string();
    assert!(
        error.starts_with("nowhere/link.toml:2: link.forward.error_vector_file: nowhere/lost.txt: No such"),
        "{error}"
    );
    document.attach("lost.txt", "00000001");
    assert_eq!(lost(&document), "00000001");
    document.set("link.forward.error_vector=01").expect("an assignment");
    let error = read(&document).expect_err("there are two").to_string();
    assert!(error.contains("error_vector says what is lost already; one of the two"), "{error}");
}
