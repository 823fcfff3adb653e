//! Transfers in tokio: a future of the result, and a stream of updates.

use std::path::PathBuf;

use tokio::sync::mpsc::{Receiver as Updates, channel};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::{
    Cancel, Error, ReceiveUpdate, ReceivedProduct, Receiver, SendError, SendSummary, SendUpdate, Sender,
};

/// Updates that wait for a slow reader. Later ones are dropped, as progress comes ten times a second.
const WAITING: usize = 256;

/// Transfer that runs on a thread of tokio's. Dropping it cancels the transfer.
#[derive(Debug)]
#[must_use]
pub struct SendTask {
    updates: Updates<SendUpdate>,
    result: JoinHandle<Result<SendSummary, SendError>>,
    cancel: Cancel,
}

/// Reception that runs on a thread of tokio's. Dropping it ends the reception.
#[derive(Debug)]
#[must_use]
pub struct ReceiveTask {
    updates: Updates<ReceiveUpdate>,
    result: JoinHandle<Result<Vec<ReceivedProduct>, Error>>,
    cancel: Cancel,
}

impl Sender {
    /// Begins to send files and directories on a thread of tokio's.
    ///
    /// # Panics
    /// There is no runtime of tokio.
    pub fn start<P: Into<PathBuf>>(self, paths: impl IntoIterator<Item = P>) -> SendTask {
        let (sender, updates) = channel(WAITING);
        let (cancel, paths) = (self.cancel(), paths.into_iter().map(Into::into).collect::<Vec<PathBuf>>());
        let result = spawn_blocking(move || {
            self.send_with(paths, &mut |update| {
                let _ = sender.try_send(update);
            })
        });
        SendTask { updates, result, cancel }
    }
}

impl Receiver {
    /// Begins to receive on a thread of tokio's.
    ///
    /// # Panics
    /// There is no runtime of tokio.
    pub fn start(self) -> ReceiveTask {
        let (sender, updates) = channel(WAITING);
        let cancel = self.cancel();
        let result = spawn_blocking(move || {
            self.receive_with(&mut |update| {
                let _ = sender.try_send(update);
            })
        });
        ReceiveTask { updates, result, cancel }
    }
}

/// Returns the error for a thread that did not end as it should.
fn lost(error: &JoinError) -> Error {
    Error::failed(format!("the transfer's thread has ended: {error}"))
}

impl SendTask {
    /// Returns the next update, or `None` when the transfer has ended.
    pub async fn next(&mut self) -> Option<SendUpdate> {
        self.updates.recv().await
    }

    /// Waits for the end of the transfer.
    ///
    /// # Errors
    /// Those of [`Sender::send`].
    pub async fn finish(mut self) -> Result<SendSummary, SendError> {
        let joined = (&mut self.result).await;
        joined.map_err(|error| SendError::from(lost(&error)))?
    }
}

impl ReceiveTask {
    /// Returns the next update, or `None` when the reception has ended.
    pub async fn next(&mut self) -> Option<ReceiveUpdate> {
        self.updates.recv().await
    }

    /// Waits for the end of the reception.
    ///
    /// # Errors
    /// Those of [`Receiver::receive`].
    pub async fn finish(mut self) -> Result<Vec<ReceivedProduct>, Error> {
        let joined = (&mut self.result).await;
        joined.map_err(|error| lost(&error))?
    }
}

impl Drop for SendTask {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Drop for ReceiveTask {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
