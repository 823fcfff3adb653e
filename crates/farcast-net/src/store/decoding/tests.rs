use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};
use farcast_core::Span;
use farcast_delivery::ErasureCode;
use farcast_files::{Incoming, Options, Outgoing};
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::parity::{BlockParity, ParityDecoder, ParityEncoder};
use crate::store::room::{NoRoom, Retry};
use crate::store::worker::{AnswerChannel, WorkerChannels};
use crate::store::{Arena, ArenaStep, StoreJob};

const SIZE: usize = 95_500;
const BLOCK: u32 = 10;
const OBJECT: ObjectId = ObjectId::new(7);

/// A worker that has received all but two segments of every block, and enough symbols. Its coding thread waits for
/// permission.
struct Scene {
    dir: tempfile::TempDir,
    outgoing: Outgoing,
    geometry: Geometry,
    worker: Worker,
    replies: Receiver<(u64, Reply)>,
    leave: Sender<()>,
    answer: AnswerChannel,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> =
            (0..SIZE as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(dir.path().join("file"), content).unwrap();
        let outgoing = Outgoing::scan(&[dir.path().join("file")], |_| {}).unwrap();
        let geometry = Geometry::new(outgoing.size(), 1000, BLOCK).unwrap();
        let (replies_in, replies) = unbounded();
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let answer = AnswerChannel { replies: replies_in, wake, reception: 1 };
        let channels = WorkerChannels {
            jobs: unbounded().1,
            free: crate::store::Pool::default(),
            wanted: Arc::default(),
            answer: answer.clone(),
        };
        let mut worker = Worker::new(channels, false, Span::ZERO);
        worker.decoding.little = 0;
        let (leave, left) = unbounded();
        worker.decoding.thread = CodingThread::start(move |job: &mut DecodeJob| {
            let _ = left.recv();
            job.run();
        });
        let into = dir.path().join("into");
        std::fs::create_dir(&into).unwrap();
        let incoming =
            Incoming::open(&into, outgoing.id(), outgoing.size(), 1000, Options::default()).unwrap();
        let parity = Some(ParityDecoder::new(geometry, 4, ErasureCode::BySize).unwrap());
        worker.products.insert(OBJECT, Product::new(OBJECT, incoming, parity, answer.clone()));
        let mut encoder = ParityEncoder::new(
            geometry,
            BlockParity { symbols: 4, kind: ErasureCode::BySize },
            outgoing.clone(),
        )
        .unwrap();
        let mut scene = Self { dir, outgoing, geometry, worker, replies, leave, answer };
        for block in 0..geometry.blocks() {
            let run = geometry.block_run(block).unwrap();
            for segment in run.segments().filter(|segment| segment - run.first() >= 2) {
                scene.store(segment);
            }
            for symbol in 0..2 {
                let bytes = encoder.symbol(&mut scene.outgoing, block, symbol).unwrap().to_vec();
                scene.symbol(block, symbol, &bytes);
            }
        }
        scene.told();
        scene
    }

    /// Lets `happenings` befall the stored object.
    fn tell(&mut self, happenings: Vec<Happening>) {
        let Worker { products, decoding, .. } = &mut self.worker;
        products.get_mut(&OBJECT).unwrap().tell(happenings, decoding);
    }

    /// Stores a segment that arrives.
    fn store(&mut self, segment: u32) {
        let payload = self.payload(segment);
        let step = ArenaStep::Store { segment, at: 0, len: payload.len() as u16 };
        self.step(step, payload);
    }

    fn symbol(&mut self, block: u32, symbol: u32, bytes: &[u8]) {
        self.step(ArenaStep::Parity { block, symbol, at: 0, len: bytes.len() as u16 }, bytes.to_vec());
    }

    fn step(&mut self, step: ArenaStep, buffer: Vec<u8>) {
        let mut arena = Arena::new();
        arena.buffer = buffer.into();
        arena.turn_to(OBJECT);
        arena.steps.push(step);
        self.worker.steps(&arena, 0).map_err(|failure| failure.error).unwrap();
    }

    fn payload(&mut self, segment: u32) -> Vec<u8> {
        let mut payload = vec![0; usize::from(self.geometry.payload_len(segment))];
        let slots = &mut [std::io::IoSliceMut::new(&mut payload)];
        self.outgoing.read_segments(u64::from(segment) * 1000, slots).unwrap();
        payload
    }

    /// Permits the thread one job, and takes its result.
    fn take_one(&mut self) {
        self.leave.send(()).unwrap();
        let job = self.worker.decoding.thread.done().recv().ok();
        self.worker.decoded(job);
    }

    /// Returns the blocks in the replies, and `true` for those that were rebuilt.
    fn told(&self) -> Vec<(u32, bool)> {
        let decoded = |(_, reply)| match reply {
            Reply::Decoded { block, rebuilt } => Some((block, rebuilt)),
            _ => None,
        };
        self.replies.try_iter().filter_map(decoded).collect()
    }

    fn missing(&self, block: u32) -> u32 {
        let run = self.geometry.block_run(block).unwrap();
        let held = self.worker.products[&OBJECT].incoming.held().count_in(run);
        run.count() - held
    }

    /// Finishes the object. Returns `true` if the file is there as it was sent.
    fn is_complete(&mut self) -> bool {
        self.worker.finish(OBJECT);
        let finished = self.replies.try_iter().any(|(_, reply)| matches!(reply, Reply::Finished));
        let read = |path: &str| std::fs::read(self.dir.path().join(path)).unwrap();
        finished && read("file") == read("into/file")
    }
}

#[test]
fn what_comes_meanwhile_is_stored_once() {
    let mut scene = Scene::new();
    for block in 0..scene.geometry.blocks() {
        scene.worker.decode(OBJECT, block).unwrap();
        assert_eq!((scene.told(), scene.missing(block)), (vec![], 2), "the thread has it");
        // Both missing segments arrive, or one of them, or none.
        (0..block % 3).for_each(|at| scene.store(block * BLOCK + at));
        scene.take_one();
        assert_eq!((scene.told(), scene.missing(block)), (vec![(block, true)], 0));
    }
    assert!(scene.is_complete());
}

#[test]
fn nothing_is_stored_of_a_block_that_was_damaged_meanwhile() {
    let mut scene = Scene::new();
    (3..6).for_each(|block| scene.worker.decode(OBJECT, block).unwrap());
    let lost = Run::one(4 * BLOCK + 7);
    scene.tell(vec![Happening::Damaged { index: None, lost }]);
    (0..3).for_each(|_| scene.take_one());
    assert_eq!(scene.told(), [(3, true), (4, false), (5, true)]);
    assert_eq!((3..6).map(|block| scene.missing(block)).collect::<Vec<_>>(), [0, 2, 0]);
    // The symbols of the block are used up, and others come.
    let mut encoder = ParityEncoder::new(
        scene.geometry,
        BlockParity { symbols: 4, kind: ErasureCode::BySize },
        scene.outgoing.clone(),
    )
    .unwrap();
    for symbol in 2..4 {
        let bytes = encoder.symbol(&mut scene.outgoing, 4, symbol).unwrap().to_vec();
        scene.symbol(4, symbol, &bytes);
    }
    scene.worker.decode(OBJECT, 4).unwrap();
    scene.take_one();
    assert_eq!((scene.told(), scene.missing(4)), (vec![(4, true)], 0));
}

#[test]
fn too_few_symbols_rebuild_nothing() {
    let mut scene = Scene::new();
    scene.tell(vec![Happening::Damaged { index: None, lost: Run::one(5 * BLOCK) }]);
    scene.told();
    let bytes = vec![0; 1000];
    scene.symbol(5, 0, &bytes);
    scene.worker.decode(OBJECT, 5).unwrap();
    scene.take_one();
    // An engine that believes in these segments would ask for parity for ever.
    let lost = |(_, reply)| if let Reply::Lost(runs) = reply { Some(runs) } else { None };
    let told: Vec<_> = scene.replies.try_iter().collect();
    assert!(matches!(told[0].1, Reply::Decoded { block: 5, rebuilt: false }));
    assert_eq!(told.into_iter().find_map(lost), Some(vec![Run::new(5 * BLOCK, 2).unwrap()]));
    assert_eq!(scene.missing(5), 2);
    scene.worker.decode(OBJECT, 5).unwrap();
    assert_eq!(scene.told(), [(5, false)], "and none at all");
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut scene = Scene::new();
    for block in 0..6 {
        scene.worker.decode(OBJECT, block).unwrap();
    }
    assert_eq!(scene.told(), [(4, true), (5, true)], "the store thread does what would be too many");
    assert_eq!(scene.worker.decoding.under_way.len(), MOST_JOBS);
    scene.take_one();
    scene.worker.decode(OBJECT, 6).unwrap();
    assert_eq!(scene.told(), [(0, true)]);
    // The limit on bytes holds too, but not for a single block.
    scene.worker.decoding.under_way.truncate(1);
    scene.worker.decoding.under_way[0].bytes = MOST_BYTES;
    scene.worker.decode(OBJECT, 7).unwrap();
    assert_eq!(scene.told(), [(7, true)]);
}

#[test]
fn a_product_is_closed_with_what_was_under_way() {
    let mut scene = Scene::new();
    (0..3).for_each(|block| scene.worker.decode(OBJECT, block).unwrap());
    (0..3).for_each(|_| scene.leave.send(()).unwrap());
    scene.worker.job(StoreJob::Close(OBJECT));
    assert_eq!(scene.told(), [(0, true), (1, true), (2, true)]);
    let (into, id, size) = (scene.dir.path().join("into"), scene.outgoing.id(), scene.outgoing.size());
    let again = Incoming::open(&into, id, size, 1000, Options::default()).unwrap();
    assert_eq!(again.held().next_clear(0), Some(3 * BLOCK));
}

#[test]
fn what_was_for_another_product_is_dropped() {
    let mut scene = Scene::new();
    (0..2).for_each(|block| scene.worker.decode(OBJECT, block).unwrap());
    scene.worker.job(StoreJob::Discard(OBJECT));
    // The next object looks the same, and has the same segments missing.
    let next = Scene::new();
    let mut product = next.worker.products.into_values().next().unwrap();
    product.answer = scene.answer.clone();
    scene.worker.products.insert(OBJECT, product);
    scene.worker.decode(OBJECT, 1).unwrap();
    (0..2).for_each(|_| scene.take_one());
    assert_eq!((scene.told(), scene.worker.decoding.under_way.len()), (vec![], 1));
    scene.take_one();
    assert_eq!(scene.told(), [(1, true)]);
}

#[test]
fn a_full_disk_takes_nothing_that_was_rebuilt() {
    let mut scene = Scene::new();
    scene.worker.decode(OBJECT, 2).unwrap();
    let retry = Retry::Steps { object: OBJECT, arena: None, from: 0 };
    scene.worker.no_room = Some(NoRoom::new(scene.worker.clock.now(), scene.answer.clone(), retry));
    scene.take_one();
    assert_eq!((scene.told(), scene.missing(2)), (vec![(2, false)], 2));
}

#[test]
fn blocks_are_answered_for_where_the_thread_has_ended() {
    let mut scene = Scene::new();
    scene.worker.decoding.thread =
        CodingThread::start(|_: &mut DecodeJob| panic!("as a mistake in the code would"));
    (1..3).for_each(|block| scene.worker.decode(OBJECT, block).unwrap());
    let job = scene.worker.decoding.thread.done().recv().ok();
    assert!(job.is_none());
    scene.worker.decoded(job);
    assert_eq!(scene.told(), [(1, false), (2, false)]);
    scene.worker.decode(OBJECT, 3).unwrap();
    scene.worker.settle_decoding(OBJECT);
    assert_eq!(scene.told(), [(3, true)]);
}
