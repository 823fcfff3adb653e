//! A thread that codes, so that whoever sends or stores need not wait for it.

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Does the work of jobs in the order in which they are handed over, and gives them back in the same. How many there may
/// be is its owner's business.
pub(crate) struct CodingThread<J> {
    jobs: Sender<J>,
    done: Receiver<J>,
}

impl<J: Send + 'static> CodingThread<J> {
    /// The thread ends with its owner, once it has done the work at hand.
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(crate) fn start(mut work: impl FnMut(&mut J) + Send + 'static) -> Self {
        let (jobs, queue) = unbounded::<J>();
        let (give_back, done) = unbounded();
        std::thread::spawn(move || {
            for mut job in queue {
                work(&mut job);
                if give_back.send(job).is_err() {
                    break;
                }
            }
        });
        Self { jobs, done }
    }

    /// Hands over `job`; it comes back at once if the thread has ended.
    pub(crate) fn begin(&self, job: J) -> Result<(), J> {
        self.jobs.send(job).map_err(|refused| refused.0)
    }

    /// Where jobs come back. It is disconnected where the thread has ended, which only a panic makes it do.
    pub(crate) fn done(&self) -> &Receiver<J> {
        &self.done
    }
}
