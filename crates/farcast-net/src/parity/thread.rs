//! A thread that codes, so that whoever sends or stores need not wait for it.

use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Does the work of jobs in the order in which they are handed over, and gives them back in the same. How many there
/// may be is its owner's business.
pub(crate) struct CodingThread<J> {
    /// With whom to unpark when the job is done.
    jobs: Sender<(J, Thread)>,
    done: Receiver<J>,
}

impl<J: Send + 'static> CodingThread<J> {
    /// The thread ends with its owner, once it has done the work at hand.
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

    /// Hands over `job`; it comes back at once if the thread has ended. When it is done, the calling thread is
    /// unparked.
    pub(crate) fn begin(&self, job: J) -> Result<(), J> {
        self.jobs.send((job, std::thread::current())).map_err(|refused| refused.0.0)
    }

    /// Where jobs come back. It is disconnected where the thread has ended, which only a panic makes it do.
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
