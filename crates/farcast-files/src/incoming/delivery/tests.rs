use super::*;

#[test]
fn partials_have_names_of_their_own() {
    assert_eq!(partial_path(b"a/b.txt", "01234567", 3), b"a/.b.txt.01234567.farcast-part");
    assert_eq!(partial_path(b"b", "01234567", 3), b".b.01234567.farcast-part");
    let long = vec![b'n'; 255];
    let (one, two) = (partial_path(&long, "01234567", 3), partial_path(&long, "01234567", 1_048_575));
    assert!(one.len() == 255 && two.len() == 255 && one != two);
    assert!(one.ends_with(b"n.01234567-3.farcast-part"));
}
