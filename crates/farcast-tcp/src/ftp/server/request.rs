//! What the owner is asked, and what its answers do.

use alloc::format;
use alloc::string::String;

use farcast_core::Time;

use super::session::Phase;
use super::{Server, ServerEvent, SessionId};
use crate::ftp::{FileId, TransferError};

/// Something that a session asks the owner. Paths are absolute, without "." and "..".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// To open a file for sending. Answered by [`Answer::Octets`]: the size of the whole file.
    Retrieve {
        /// Its path.
        path: String,
        /// The octet from which on it is sent.
        offset: u64,
    },
    /// To open a file for receiving. Answered by [`Answer::Done`].
    Store {
        /// Its path.
        path: String,
        /// The octet from which on it is received.
        offset: u64,
    },
    /// That everything of the file has arrived, and is to be kept. Answered by [`Answer::Done`].
    Keep {
        /// Octets that arrived.
        octets: u64,
    },
    /// To make a list for people. Answered by [`Answer::Octets`]: its length.
    List {
        /// Of which directory or file.
        path: String,
    },
    /// To make a list of names, a line each. Answered by [`Answer::Octets`]: its length.
    Names {
        /// In which directory.
        path: String,
    },
    /// The size of a file. Answered by [`Answer::Octets`].
    Size {
        /// Its path.
        path: String,
    },
    /// To delete a file. Answered by [`Answer::Done`].
    Delete {
        /// Its path.
        path: String,
    },
    /// Whether a directory may be entered. Answered by [`Answer::Done`].
    Enter {
        /// Its path.
        path: String,
    },
}

/// An answer of the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// It has so many octets.
    Octets(u64),
    /// It is not done.
    Refused(Refusal),
}

/// Why something is not done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// There is no such file (550).
    Missing,
    /// It is not allowed (550).
    Forbidden,
    /// Somebody else uses it (450).
    Busy,
    /// There is no room (452).
    NoRoom,
    /// The name is not one that a file can have (553).
    Name,
    /// Something went wrong here (451).
    Failed,
}

impl Refusal {
    const fn reply(self) -> (u16, &'static str) {
        match self {
            Self::Missing => (550, "No such file or directory."),
            Self::Forbidden => (550, "Permission denied."),
            Self::Busy => (450, "File busy."),
            Self::NoRoom => (452, "Insufficient storage space."),
            Self::Name => (553, "File name not allowed."),
            Self::Failed => (451, "Local error in processing."),
        }
    }
}

/// An answer that answers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The session has asked nothing, or it is over.
    #[error("the session has asked nothing, or it is over")]
    NotAsked,
    /// It does not fit the request.
    #[error("the answer does not fit what was asked")]
    Unfit,
}

impl Server {
    /// Asks the owner.
    pub(super) fn ask(&mut self, id: SessionId, request: Request) {
        let file = FileId(self.next_file);
        self.next_file += 1;
        self.ask_about(id, file, request);
    }

    pub(super) fn ask_about(&mut self, id: SessionId, file: FileId, request: Request) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.phase = Phase::Asked { file, request: request.clone() };
        self.events.push_back(ServerEvent::Asked { session: id, file, request });
    }

    pub(super) fn take_answer(
        &mut self,
        now: Time,
        id: SessionId,
        answer: Answer,
    ) -> Result<(), AnswerError> {
        let session = self.sessions.get_mut(&id).ok_or(AnswerError::NotAsked)?;
        let Phase::Asked { file, request } = session.phase.clone() else {
            return Err(AnswerError::NotAsked);
        };
        session.phase = Phase::Idle;
        match (&request, answer) {
            (_, Answer::Refused(refusal)) => self.take_refusal(id, &request, refusal),
            (Request::Retrieve { offset, .. }, Answer::Octets(size)) => {
                if let Some(octets) = size.checked_sub(*offset) {
                    self.begin_transfer(now, id, file, *offset, Some(octets));
                } else {
                    self.drop_plan(id);
                    self.reply(id, 554, "The file ends before that octet.");
                }
            }
            (Request::List { .. } | Request::Names { .. }, Answer::Octets(octets)) => {
                self.begin_transfer(now, id, file, 0, Some(octets));
            }
            (Request::Store { offset, .. }, Answer::Done) => {
                self.begin_transfer(now, id, file, *offset, None);
            }
            (Request::Keep { .. }, Answer::Done) => self.was_kept(now, id),
            (Request::Size { .. }, Answer::Octets(size)) => self.reply(id, 213, &format!("{size}")),
            (Request::Delete { .. }, Answer::Done) => self.reply(id, 250, "File deleted."),
            (Request::Enter { path }, Answer::Done) => {
                session.directory.clone_from(path);
                self.reply(id, 250, "Directory changed.");
            }
            _ => {
                session.phase = Phase::Asked { file, request };
                return Err(AnswerError::Unfit);
            }
        }
        Ok(())
    }

    fn take_refusal(&mut self, id: SessionId, request: &Request, refusal: Refusal) {
        let (code, text) = refusal.reply();
        match request {
            Request::Keep { .. } => {
                self.end_transfer(id, Err(TransferError::NotKept), code, text);
            }
            Request::Retrieve { .. }
            | Request::Store { .. }
            | Request::List { .. }
            | Request::Names { .. } => {
                self.drop_plan(id);
                self.reply(id, code, text);
            }
            _ => self.reply(id, code, text),
        }
    }
}
