//! Record of delivered file names. It prevents that a file replaces another one whose name this file system takes for
//! the same.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::names::likeness;

/// Number of names that are remembered; the oldest are forgotten first.
const MOST: usize = 1 << 16;

/// Names of files that were delivered into one directory, shared by its receptions.
#[derive(Debug, Default)]
pub struct Delivered(Mutex<NameList>);

#[derive(Debug, Default)]
struct NameList {
    /// Names by their likeness (see [`likeness`]).
    names: BTreeMap<u64, Vec<Name>>,
    /// Likenesses of all names, the oldest first.
    order: VecDeque<u64>,
}

/// Name of a delivered file, with its origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// Path below the receiving directory.
    pub(crate) path: Vec<u8>,
    /// Name of the file at the sender.
    pub(crate) said: Vec<u8>,
    /// Session in which the sender delivered the file.
    pub(crate) session: String,
}

impl Delivered {
    fn lock(&self) -> MutexGuard<'_, NameList> {
        // A panic leaves a list that can still be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a name. An earlier record of the same path is replaced.
    pub(crate) fn note(&self, name: Name) {
        let key = likeness(&name.path);
        let mut list = self.lock();
        let alike = list.names.entry(key).or_default();
        if let Some(same) = alike.iter_mut().find(|one| one.path == name.path) {
            *same = name;
            return;
        }
        alike.push(name);
        list.order.push_back(key);
        if list.order.len() > MOST
            && let Some(oldest) = list.order.pop_front()
            && let Some(alike) = list.names.get_mut(&oldest)
        {
            alike.remove(0);
            if alike.is_empty() {
                list.names.remove(&oldest);
            }
        }
    }

    /// Returns the sender's name of another file that the same session has delivered to the path `name.path`; `None` if
    /// there is no such file.
    pub(crate) fn same(&self, name: &Name) -> Option<Vec<u8>> {
        let list = self.lock();
        let alike = list.names.get(&likeness(&name.path))?;
        let other =
            |one: &&Name| one.path == name.path && one.session == name.session && one.said != name.said;
        alike.iter().find(other).map(|one| one.said.clone())
    }

    /// Returns other delivered names that a file system may take for the same as `path`.
    pub(crate) fn alike(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let list = self.lock();
        let alike = list.names.get(&likeness(path)).into_iter().flatten();
        alike.filter(|one| one.path != path).map(|one| one.path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, said: &str, session: &str) -> Name {
        Name { path: path.into(), said: said.into(), session: session.into() }
    }

    #[test]
    fn a_name_is_taken_by_another_file_of_its_session_only() {
        let delivered = Delivered::default();
        delivered.note(name("d_x_y", "d/x/y", "1"));
        assert_eq!(delivered.same(&name("d_x_y", "d/x_y", "1")), Some(b"d/x/y".to_vec()));
        assert_eq!(delivered.same(&name("d_x_y", "d/x/y", "1")), None, "the same file again");
        assert_eq!(
            delivered.same(&name("d_x_y", "d/x_y", "2")),
            None,
            "what another session sends replaces it"
        );
        assert_eq!(delivered.alike(b"D_X_Y"), [b"d_x_y"]);
        assert!(delivered.alike(b"d_x_y").is_empty() && delivered.alike(b"d_x_z").is_empty());
    }

    #[test]
    fn it_remembers_as_many_as_it_may() {
        let delivered = Delivered::default();
        for number in 0..MOST + 10 {
            delivered.note(name(&format!("f{number}"), "", ""));
        }
        let list = delivered.lock();
        assert_eq!((list.names.len(), list.order.len()), (MOST, MOST));
        drop(list);
        assert!(delivered.alike(b"F9").is_empty());
        assert_eq!(delivered.alike(b"F10"), [b"f10"]);
    }
}
