//! Suggestions for unknown words.

/// Length of the longest word that is compared, in octets: the work grows with its square.
const LONGEST: usize = 64;

/// Common names of keys elsewhere, each with the name used here.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("loss", "per"),
    ("losses", "per"),
    ("packet_loss", "per"),
    ("loss_rate", "per"),
    ("plr", "per"),
    ("bit_error_rate", "ber"),
    ("latency", "delay"),
    ("buffer", "queue"),
];

/// Returns the known word for which `word` is a name used elsewhere, or else the known word most like it.
///
/// A word is like another if at most a third of the letters differ. Of several equally like it, the first is
/// returned.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let mut same = OTHER_NAMES.iter().filter(|(other, _)| word.eq_ignore_ascii_case(other));
    if let Some(&known) = same.find_map(|(_, name)| known.iter().find(|known| *known == name)) {
        return Some(known);
    }
    let distances = known.into_iter().map(|other| (distance(word, other), other));
    let (least, other) = distances.min_by_key(|(distance, _)| *distance)?;
    let letters = word.chars().count().max(other.chars().count());
    (least <= letters.max(3) / 3).then_some(other)
}

/// Returns the number of letters to insert, remove, replace or swap with their neighbour to make `a` of `b` (Damerau
/// 1964; no letter is touched twice).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (mut two_above, mut above) = (Vec::<usize>::new(), (0..=b.len()).collect::<Vec<_>>());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(two_above[j - 2] + 1);
            }
            row.push(least);
        }
        two_above = core::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_are_the_published_ones() {
        // kitten and sitting: Levenshtein's textbook example. The rest follow from the definition.
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("rate", "rate", 0),
            ("dealy", "delay", 1),
            ("ca", "abc", 3),
            ("größe", "grösse", 2),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let known = ["rate", "delay", "per", "queue"];
        assert_eq!(nearest("ratee", known), Some("rate"));
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("pr", known), Some("per"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!((nearest("loss", known), nearest("loss", ["rate"])), (Some("per"), None));
        assert_eq!(nearest(&"rate".repeat(1_000_000), known), None);
        assert_eq!(nearest("rate", []), None);
    }
}
