//! Settings that forbid an ordinary user the rights that farcast needs, and the remedies.

use std::fs;

use crate::EmuError;
use crate::namespace::become_root_of_a_user_namespace;

/// Settings that forbid user namespaces: name, forbidding value, and allowing value. The first is Debian's, the second
/// Ubuntu's, the third every kernel's (`user_namespaces(7)`).
const SETTINGS: [(&str, u64, u64); 3] = [
    ("kernel.unprivileged_userns_clone", 0, 1),
    ("kernel.apparmor_restrict_unprivileged_userns", 1, 0),
    ("user.max_user_namespaces", 0, 10_000),
];

/// Makes this process root of a user namespace, or names the setting that forbids it.
///
/// # Errors
/// [`EmuError::UserNamespaces`], or [`EmuError::Threads`].
pub(super) fn become_root() -> Result<(), EmuError> {
    become_root_of_a_user_namespace().map_err(|error| match error {
        EmuError::Threads => error,
        _ => EmuError::UserNamespaces { advice: advice(setting) },
    })
}

/// Returns a remedy, given the values of kernel parameters.
fn advice(value: impl Fn(&str) -> Option<u64>) -> String {
    let forbids = |(name, forbidding, _): &&(&str, u64, u64)| value(name) == Some(*forbidding);
    SETTINGS.iter().find(forbids).map_or_else(
        || "in a container, give it more rights (`--cap-add SYS_ADMIN`, `--privileged`)".into(),
        |(name, _, allowing)| format!("let root run `sysctl -w {name}={allowing}`"),
    )
}

fn setting(name: &str) -> Option<u64> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_is_named_with_the_value_that_allows() {
        let said = |set: &'static [(&str, u64)]| {
            advice(move |name| set.iter().find(|(of, _)| *of == name).map(|(_, value)| *value))
        };
        let debian = &[("kernel.unprivileged_userns_clone", 0), ("user.max_user_namespaces", 90_000)];
        assert_eq!(said(debian), "let root run `sysctl -w kernel.unprivileged_userns_clone=1`");
        let ubuntu =
            &[("kernel.unprivileged_userns_clone", 1), ("kernel.apparmor_restrict_unprivileged_userns", 1)];
        assert_eq!(said(ubuntu), "let root run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`");
        let hardened = &[("user.max_user_namespaces", 0)];
        assert_eq!(said(hardened), "let root run `sysctl -w user.max_user_namespaces=10000`");
        assert!(said(&[]).contains("container"));
    }
}
