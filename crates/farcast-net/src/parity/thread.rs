//! A thread that encodes or decodes, so that the sending or storing thread need not wait.

use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Works on jobs in the order in which they are handed over, and gives them back in the same order. The owner bounds
/// their number.
pub(crate) struct CodingThread<J> {
    /// Jobs, each with the thread to unpark when it is done.
    jobs: Sender<(J, Thread)>,
    done: Receiver<J>,
}

impl<J: Send + 'static> CodingThread<J> {
    /// Starts the thread. It ends with its owner, after the work at hand.
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(crate) fn start(mut work: impl FnMut(&mut J) + Send + 'static) -> Self {
        let (jobs, queue) = unbounded::<(J, Thread)>();
        let (give_back, done) = unbounded();
        std::thread::spawn(move || {
            for (mut job, owner) in queue {
                work(&mut job);
                if give_back.send(job).is_err() {
                    break;
                }
                owner.unpark();
            }
        });
        Self { jobs, done }
    }

    /// Hands over `job`. When it is done, the calling thread is unparked.
    ///
    /// # Errors
    /// The job itself, if the thread has ended.
    pub(crate) fn begin(&self, job: J) -> Result<(), J> {
        self.jobs.send((job, std::thread::current())).map_err(|refused| refused.0.0)
    }

    /// Returns the channel on which jobs come back. It is disconnected if the thread has ended, as only a panic makes
    /// it.
    pub(crate) fn done(&self) -> &Receiver<J> {
        &self.done
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use farcast_core::{Span, Time};

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn who_handed_a_job_over_is_woken_when_it_is_done() {
        let (leave, left) = unbounded();
        let thread = CodingThread::start(move |job: &mut u32| {
            let _ = left.recv();
            *job += 1;
        });
        thread.begin(1).unwrap();
        assert!(thread.done().is_empty());
        leave.send(()).unwrap();
        let clock = Clock::start();
        while thread.done().is_empty() {
            // Far longer than any machine takes to wake it.
            std::thread::park_timeout(Duration::from_mins(1));
        }
        assert!(clock.now().since(Time::ZERO) < Span::from_secs(30), "not woken");
        assert_eq!(thread.done().recv(), Ok(2));
        // The thread ends, and says so, when a job panics; the owner is not left to wait for it.
        let thread = CodingThread::start(|_: &mut u32| panic!("on purpose"));
        thread.begin(1).unwrap();
        assert!(thread.done().recv().is_err());
    }
}
