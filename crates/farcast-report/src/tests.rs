//! Helpers that tests of pages share, and properties of all pages.

pub(crate) mod markup;

const STYLES: [&str; 3] =
    [include_str!("page.css"), include_str!("timeline/page.css"), include_str!("emulation/page.css")];

#[test]
fn all_pages_look_like_one_program() {
    for style in STYLES {
        for word in [
            "#1b2733",
            "#e6ebf0",
            "#12181f",
            "#d5dde5",
            "#f3f6f9",
            "font: 1rem/1.5 system-ui, \"Segoe UI\", \"DejaVu Sans\", sans-serif;",
            "font-size: 1.7rem;",
            "padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem) 2rem;",
        ] {
            assert!(style.contains(word), "{word} is not in\n{style}");
        }
        assert!(style.contains("scrolls"), "no cue that something is wider than the screen");
    }
}
