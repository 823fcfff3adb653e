use super::*;

fn routes(answers: &str) -> Routes {
    let at = |address: &str| address.parse().unwrap();
    Routes {
        source: at("10.0.0.1:5402"),
        announcements: at("239.255.54.1:5402"),
        content: at("239.255.54.2:5402"),
        answers: at(answers),
    }
}

#[test]
fn receivers_hear_each_other_on_the_group_of_answers_only() {
    let to = |address: &str, answers: &str| audience(address.parse().unwrap(), &routes(answers));
    let group = "239.255.54.9:5402";
    assert_eq!(to("239.255.54.9", group), Party::GROUP);
    assert_eq!(to("239.255.54.2", "239.255.54.2:5402"), Party::GROUP, "one group may be for all");
    for elsewhere in ["239.255.54.1", "239.255.54.2", "224.0.0.22", "10.0.0.1"] {
        assert_eq!(to(elsewhere, group), Party::HUB, "{elsewhere}");
    }
    // Where answers go to the sender alone, no receiver listens for them.
    assert_eq!(to("239.255.54.2", "10.0.0.1:5402"), Party::HUB);
}
