//! A small reader of markup that refuses what is not well-formed.

/// An element with its own text, without inner elements.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    /// The text directly in it.
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| attribute.1.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        self.attribute(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("{name} of {self:?}"))
    }

    /// Returns the first point of a path.
    pub(crate) fn begin(&self) -> (f64, f64) {
        let path = self.attribute("d").expect("a path");
        let end = path[1..].find(|c: char| c.is_alphabetic()).expect("more of it") + 1;
        let (x, y) = path[1..end].split_once(' ').expect("two coordinates");
        (x.parse().expect("a number"), y.parse().expect("a number"))
    }
}

/// Returns the elements of a well-formed document with one root, in the order of their beginnings.
pub(crate) fn elements(mut rest: &str) -> Vec<Element> {
    let mut all: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    while let Some(at) = rest.find('<') {
        let text = checked(&rest[..at]);
        match open.last() {
            Some(&element) => all[element].text += text,
            None => assert!(text.trim().is_empty(), "text outside of all elements: {text}"),
        }
        let end = rest.find('>').expect("the end of a tag");
        let tag = &rest[at + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().map(|element| all[element].name.clone()).as_deref(), Some(name));
        } else {
            assert!(all.is_empty() || !open.is_empty(), "a second root: {tag}");
            let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            all.push(element(tag));
            if !closed {
                open.push(all.len() - 1);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && checked(rest).trim().is_empty());
    all
}

fn element(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.chars().all(char::is_alphanumeric), "{name}");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, after) = rest.trim_start().split_once("=\"").expect("a quoted value");
        let (value, after) = after.split_once('"').expect("the end of a value");
        assert!(key.chars().all(|c| c.is_alphanumeric() || c == '-'), "{key}");
        assert!(attributes.iter().all(|other| other.0 != key), "{key} comes twice");
        attributes.push((key.into(), checked(value).into()));
        rest = after;
    }
    Element { name: name.into(), attributes, text: String::new() }
}

/// Checks that every ampersand in `text` begins one of the known entities.
fn checked(text: &str) -> &str {
    assert!(!text.contains(['<', '>']) && text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    for entity in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|known| entity.starts_with(known)), "{entity}");
    }
    text
}
