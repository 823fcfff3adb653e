//! Content of an object that comes, and its completion.

use farcast_core::Time;
use farcast_core::engine::Reject;
use farcast_delivery::ObjectId;
use farcast_delivery::nack::ObjectContent;

use super::Receiver;
use crate::message::Data;

impl Receiver {
    /// Handles symbols of a begun object; `fresh` means that this message began it.
    pub(super) fn data(&mut self, now: Time, data: &Data, fresh: bool) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let (object, before) = (data.about.object, session.position);
        let memory: u64 = session.objects.values().map(|one| one.content.memory()).sum();
        let Some(one) = session.objects.get_mut(&object) else { return Err(Reject::Duplicate) };
        one.check(data)?;
        let block = if data.ends_block { data.block + 1 } else { data.block };
        one.reached = one.reached.max(block);
        session.position = (object, block);
        let result = if one.content.is_receiving() {
            let room = self.config.parity_memory.saturating_sub(memory);
            one.content.store(data.block, data.symbols, data.parity_run(), room, &mut self.events)
        } else {
            Err(Reject::Duplicate)
        };
        if result.is_ok() {
            session.fed = Some(now);
        }
        if (object, block) > before || fresh {
            one.content.advance();
            self.consider(now);
        }
        result
    }

    /// Returns the content of the object that its owner knows by `id`.
    pub(super) fn content(&mut self, id: ObjectId) -> Option<&mut ObjectContent> {
        let mut objects = self.session.as_mut()?.objects.values_mut().map(|one| &mut one.content);
        objects.find(|content| content.id == id)
    }
}
