//! The book: it builds without a warning, all its links lead somewhere, and the list of its pages is complete.

use std::fs;

use farcast_book::{html, links, repository};

#[test]
fn the_book_builds_and_its_links_lead_somewhere() {
    let (root, into) = (repository(), tempfile::tempdir().expect("a folder"));
    let warnings = html::build(&root, into.path()).expect("a book");
    assert!(warnings.is_empty(), "mdBook warns:\n{}", warnings.join("\n"));
    let broken = links::broken(&root, into.path()).expect("pages");
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let unlisted = links::unlisted(&repository()).expect("pages");
    assert!(unlisted.is_empty(), "docs/src/SUMMARY.md does not list:\n{}", unlisted.join("\n"));
}

#[test]
fn what_leads_nowhere_is_found() {
    let root = tempfile::tempdir().expect("a folder");
    let source = root.path().join("docs/src");
    fs::create_dir_all(&source).expect("folders");
    let put = |name: &str, text: &str| fs::write(root.path().join(name), text).expect("a file");
    put("docs/book.toml", "[book]\ntitle = \"b\"\n");
    put("docs/src/SUMMARY.md", "- [A](a.md)\n- [B](b.md)\n");
    put(
        "docs/src/a.md",
        "# A\n\n[good](b.md#here), [bad](b.md#there), [gone](c.md), [far](https://example.org/x)\n",
    );
    put("docs/src/b.md", "# B\n\n## Here\n\n[back](#b), [bad](#nowhere)\n");
    put("docs/src/c.md", "# C\n");
    put("README.md", "[a](docs/src/a.md#a), [bad](docs/src/a.md#z), [gone](missing.txt)\n");
    let built = root.path().join("built");
    html::build(root.path(), &built).expect("a book");
    let mut broken = links::broken(root.path(), &built).expect("pages");
    broken.sort();
    let expected = [
        "README.md: docs/src/a.md#z",
        "README.md: missing.txt",
        "a.html: b.html#there",
        "a.html: c.html",
        "b.html: #nowhere",
    ];
    // The first page is the index, too.
    broken.retain(|line| !line.starts_with("index.html"));
    assert_eq!(broken, expected);
    assert_eq!(links::unlisted(root.path()).expect("pages"), ["c.md"]);
}
