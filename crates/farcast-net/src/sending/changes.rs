//! Handling of files that change while they are sent.

use farcast_core::Time;
use farcast_delivery::{Cause, ObjectId, Protocol, SenderEngine as _};
use farcast_files::{ChangedFile, SourceError};

use super::{Driver, SendNotice};
use crate::batch::ObjectSource;
use crate::changing::Changing;

impl<P: Protocol> Driver<'_, P> {
    /// Looks for files that have changed, since these cannot match their digests any more. Does nothing once all
    /// receivers have everything.
    pub(super) fn note_changes(&mut self, now: Time, sources: &[ObjectSource]) {
        let changes: usize = sources.iter().map(|source| source.outgoing.changes()).sum();
        if changes == self.changes || self.delivered.is_some() || self.error.is_some() {
            return;
        }
        self.changes = changes;
        for (object, source) in (0..).map(ObjectId::new).zip(sources) {
            for file in source.outgoing.changed() {
                self.file_changed(now, object, source, &file);
            }
        }
    }

    fn file_changed(&mut self, now: Time, object: ObjectId, source: &ObjectSource, file: &ChangedFile) {
        let name = source.outgoing.name_of(file.file).unwrap_or_default();
        let why = format!("\"{name}\" {}", file.change.words_while_sent());
        match self.options.changing {
            Changing::Skip => {
                if !self.told.insert((object, file.file)) {
                    return;
                }
                if let Some(gone) =
                    source.outgoing.bytes_of(file.file).and_then(|bytes| source.segments_of(&bytes))
                {
                    self.sender.withdraw(now, object, &gone, &why);
                }
                (self.observer)(now, &self.sender, &SendNotice::Changed { file, name: &name });
            }
            Changing::Again => self.sender.abort(now, Cause::SourceRenewed, Some(why)),
            Changing::Fail => {
                self.sender.abort(now, Cause::SourceChanged, Some(why));
                self.error.get_or_insert_with(|| SourceError::of_change(file.change, &file.path).into());
            }
        }
    }
}
