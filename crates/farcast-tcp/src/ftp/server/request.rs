//! Requests to the owner, and the effects of its answers.

use alloc::format;
use alloc::string::String;

use farcast_core::Time;

use super::session::SessionPhase;
use super::{Server, ServerEvent, SessionId};
use crate::ftp::{FileId, TransferError};

/// A request of a session to the owner. Paths are absolute, without "." and "..".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Open a file for sending. Answered by [`Answer::Octets`]: the size of the whole file.
    Retrieve {
        /// Path of the file.
        path: String,
        /// Octet at which sending begins.
        offset: u64,
    },
    /// Open a file for receiving. Answered by [`Answer::Done`].
    Store {
        /// Path of the file.
        path: String,
        /// Octet at which receiving begins.
        offset: u64,
    },
    /// Keep the file: everything of it has arrived. Answered by [`Answer::Done`].
    Keep {
        /// Octets that arrived.
        octets: u64,
    },
    /// Make a human-readable list. Answered by [`Answer::Octets`]: its length.
    List {
        /// Directory or file to list.
        path: String,
    },
    /// Make a list of names, a line each. Answered by [`Answer::Octets`]: its length.
    Names {
        /// Directory to list.
        path: String,
    },
    /// Tell the size of a file. Answered by [`Answer::Octets`].
    Size {
        /// Path of the file.
        path: String,
    },
    /// Delete a file. Answered by [`Answer::Done`].
    Delete {
        /// Path of the file.
        path: String,
    },
    /// Permit entering a directory. Answered by [`Answer::Done`].
    Enter {
        /// Path of the directory.
        path: String,
    },
}

/// An answer of the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The request is done.
    Done,
    /// The file or list has this many octets.
    Octets(u64),
    /// The request is refused.
    Refused(Refusal),
}

/// Reason for which a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// There is no such file (550).
    Missing,
    /// The request is not allowed (550).
    Forbidden,
    /// The file is in use (450).
    Busy,
    /// There is no room (452).
    NoRoom,
    /// The name is not valid for a file (553).
    Name,
    /// An error occurred at the server (451).
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

/// Reason for which an answer has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The session has asked nothing, or it is over.
    #[error("the session has asked nothing, or it is over")]
    NotAsked,
    /// The answer does not fit the request.
    #[error("the answer does not fit what was asked")]
    Unfit,
}

impl Server {
    /// Asks the owner, with a new file identifier.
    pub(super) fn ask(&mut self, id: SessionId, request: Request) {
        let file = FileId(self.next_file);
        self.next_file += 1;
        self.ask_about(id, file, request);
    }

    pub(super) fn ask_about(&mut self, id: SessionId, file: FileId, request: Request) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.phase = SessionPhase::Asked { file, request: request.clone() };
        self.events.push_back(ServerEvent::Asked { session: id, file, request });
    }

    pub(super) fn take_answer(
        &mut self,
        now: Time,
        id: SessionId,
        answer: Answer,
    ) -> Result<(), AnswerError> {
        let session = self.sessions.get_mut(&id).ok_or(AnswerError::NotAsked)?;
        let SessionPhase::Asked { file, request } = session.phase.clone() else {
            return Err(AnswerError::NotAsked);
        };
        session.phase = SessionPhase::Idle;
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
                session.phase = SessionPhase::Asked { file, request };
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
