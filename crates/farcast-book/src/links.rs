//! Check of links: within the built book, and from the README into it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Anchors of each page of the built book, by the page's path.
type Names = BTreeMap<PathBuf, BTreeSet<String>>;

/// Returns the broken links, a line each: links in the pages in `built`, and links of the README at `root` to the book.
///
/// # Errors
/// A file that cannot be read.
pub fn broken(root: &Path, built: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    for path in files(built, "html")? {
        let text = read(&built.join(&path))?;
        pages.insert(path, text);
    }
    let names: Names = pages.iter().map(|(path, text)| (path.clone(), values(text, "id"))).collect();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        // mdBook's combined pages have the links of all pages, relative to other places.
        if matches!(page.to_str(), Some("print.html" | "toc.html" | "404.html")) {
            continue;
        }
        for link in values(text, "href").iter().filter(|link| is_own(link)) {
            if !leads(link, page, &names)
                && !built.join(page).parent().is_some_and(|at| at.join(link).is_file())
            {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    let readme = read(&root.join("README.md"))?;
    for link in
        readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| is_own(link))
    {
        let good = match link.strip_prefix("docs/src/") {
            Some(page) => leads(&page.replacen(".md", ".html", 1), Path::new(""), &names),
            None => root.join(link).exists(),
        };
        if !good {
            broken.push(format!("README.md: {link}"));
        }
    }
    Ok(broken)
}

/// Returns pages in `docs/src` of the repository at `root` that its `SUMMARY.md` does not list.
///
/// # Errors
/// A file that cannot be read.
pub fn unlisted(root: &Path) -> Result<Vec<String>, String> {
    let source = root.join("docs/src");
    let summary = read(&source.join("SUMMARY.md"))?;
    let pages = files(&source, "md")?.into_iter().map(|path| path.display().to_string());
    Ok(pages.filter(|page| page != "SUMMARY.md" && !summary.contains(&format!("]({page})"))).collect())
}

/// Returns `true` if a link of `page` leads to a page of the book, and to an existing anchor if it has one.
fn leads(link: &str, page: &Path, names: &Names) -> bool {
    let (path, name) = link.split_once('#').unwrap_or((link, ""));
    let to = if path.is_empty() { page.to_owned() } else { joined(page.parent().unwrap_or(page), path) };
    names.get(&to).is_some_and(|names| name.is_empty() || names.contains(name))
}

/// Returns `path` relative to `at`, without `..`.
fn joined(at: &Path, path: &str) -> PathBuf {
    let mut joined = at.to_owned();
    for part in Path::new(path).components() {
        match part {
            // A path that leads out of the book is not a page of it.
            Component::ParentDir if joined.pop() => {}
            Component::CurDir => {}
            part => joined.push(part),
        }
    }
    joined
}

/// Returns `true` if a link stays within this repository.
fn is_own(link: &str) -> bool {
    !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with("data:")
}

/// Returns all values of an attribute in a page.
fn values(page: &str, attribute: &str) -> BTreeSet<String> {
    let before = format!(" {attribute}=\"");
    let values = page.split(&*before).skip(1).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&quot;", "\"").replace("&amp;", "&")).collect()
}

/// Returns the files in a folder and its subfolders with this extension, as paths relative to the folder.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let at = folder.join(&inner);
        for entry in std::fs::read_dir(&at).map_err(|error| format!("{}: {error}", at.display()))? {
            let path = inner.join(entry.map_err(|error| error.to_string())?.file_name());
            if folder.join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
