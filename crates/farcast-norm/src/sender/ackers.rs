//! Named receivers of a sender: their acknowledgements, and the turn of each to be asked.

use alloc::vec::Vec;

use farcast_core::{Span, Time};

use crate::message::NodeId;

/// Receiver that is to acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Acker {
    node: NodeId,
    /// Number of objects, from the first, that it has acknowledged.
    has: u32,
    /// `true` if its last request asked for nothing but withdrawn objects.
    is_bereft: bool,
    /// Time from which it may be asked again, if receivers are asked by turns.
    rests_until: Time,
}

/// Receivers that a flush asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) nodes: Vec<NodeId>,
    /// `true` if every receiver that lacks anything has had its turn in this round.
    pub(super) ends_round: bool,
    /// Time from which the receiver whose turn is next may be asked.
    pub(super) next_at: Time,
}

impl Piece {
    /// Piece of no receivers, because none is to be asked now.
    pub(super) const NONE: Self = Self { nodes: Vec::new(), ends_round: false, next_at: Time::ZERO };
}

/// Receivers that are to acknowledge. There may be 100,000, so no message of a receiver makes the sender look through
/// all of them.
#[derive(Clone, Debug)]
pub(super) struct Ackers {
    list: Vec<Acker>,
    /// Places in `list`, in the order of node ids.
    by_node: Vec<u32>,
    /// Number of objects.
    objects: u32,
    /// Number of receivers that have not acknowledged all objects, and number of those that are bereft.
    lacking: usize,
    bereft: usize,
    /// Number of objects of the last watermark, and number of receivers that have not acknowledged these.
    mark: (u32, usize),
    /// `true` once receivers were asked by turns.
    by_turns: bool,
    /// Place of the receiver whose turn is next.
    next: usize,
    /// `true` if the round is not one that [`interrupt`](Self::interrupt) has cut.
    is_whole: bool,
}

impl Ackers {
    /// Makes the list of receivers that have acknowledged none of `objects` objects.
    pub(super) fn new(nodes: &[NodeId], objects: u32) -> Self {
        let mut by_node: Vec<u32> = (0..nodes.len() as u32).collect();
        by_node.sort_unstable_by_key(|&place| nodes[place as usize]);
        let acker = |&node| Acker { node, has: 0, is_bereft: false, rests_until: Time::ZERO };
        Self {
            list: nodes.iter().map(acker).collect(),
            by_node,
            objects,
            lacking: nodes.len(),
            bereft: 0,
            mark: (0, 0),
            by_turns: false,
            next: 0,
            is_whole: true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the place of `node`, if it is named.
    pub(super) fn find(&self, node: NodeId) -> Option<usize> {
        let by_node = |&place: &u32| self.list[place as usize].node;
        self.by_node.binary_search_by_key(&node, by_node).ok().map(|at| self.by_node[at] as usize)
    }

    /// Returns the number of objects, from the first, that the receiver at place `at` has acknowledged.
    pub(super) fn has(&self, at: usize) -> u32 {
        self.list[at].has
    }

    /// Notes that the receiver at place `at` has acknowledged the first `objects` objects, more than before.
    pub(super) fn acknowledge(&mut self, at: usize, objects: u32) {
        let acker = &mut self.list[at];
        let before = core::mem::replace(&mut acker.has, objects);
        acker.rests_until = Time::ZERO;
        if (before..objects).contains(&(self.mark.0.wrapping_sub(1))) {
            self.mark.1 -= 1;
        }
        if objects >= self.objects {
            self.lacking -= 1;
            self.bereft -= usize::from(acker.is_bereft);
        }
    }

    /// Notes that the last request of the receiver at place `at` asked for nothing but withdrawn objects, or did not.
    pub(super) fn set_bereft(&mut self, at: usize, is_bereft: bool) {
        let acker = &mut self.list[at];
        let before = core::mem::replace(&mut acker.is_bereft, is_bereft);
        if acker.has < self.objects {
            self.bereft = self.bereft + usize::from(is_bereft) - usize::from(before);
        }
    }

    /// Returns `true` if there are receivers that have not acknowledged all objects, and the last request of each asked
    /// for nothing but withdrawn objects.
    pub(super) fn are_bereft(&self) -> bool {
        self.lacking > 0 && self.bereft == self.lacking
    }

    /// Removes the receiver at place `at`; those behind it move up.
    pub(super) fn remove(&mut self, at: usize) {
        let acker = self.list.remove(at);
        self.by_node.retain(|&place| place as usize != at);
        for place in &mut self.by_node {
            *place -= u32::from(*place as usize > at);
        }
        self.next -= usize::from(self.next > at);
        self.mark.1 -= usize::from(acker.has < self.mark.0);
        if acker.has < self.objects {
            self.lacking -= 1;
            self.bereft -= usize::from(acker.is_bereft);
        }
    }

    /// Returns the receivers that have not acknowledged all objects.
    pub(super) fn lost(&self) -> Vec<NodeId> {
        self.list.iter().filter(|acker| acker.has < self.objects).map(|acker| acker.node).collect()
    }

    /// Returns the number of receivers that have not acknowledged the first `objects` objects.
    pub(super) fn lacking(&mut self, objects: u32) -> usize {
        if objects >= self.objects {
            return self.lacking;
        }
        if self.mark.0 != objects {
            self.mark = (objects, self.list.iter().filter(|acker| acker.has < objects).count());
        }
        self.mark.1
    }

    /// Returns `true` if no receiver is waited for.
    pub(super) fn are_done(&self) -> bool {
        self.lacking == 0
    }

    /// Notes that content was sent. Receivers that were asked before in the same round may have had nothing to answer, so
    /// the round does not count.
    pub(super) fn interrupt(&mut self) {
        self.is_whole = self.next == 0;
    }

    /// Returns `true` if receivers have been asked by turns. Then others may have just been asked.
    pub(super) fn are_by_turns(&self) -> bool {
        self.by_turns
    }

    /// Returns all receivers that have not acknowledged the first `objects` objects: a round of one piece.
    pub(super) fn all(&self, objects: u32) -> Piece {
        let lacks = |acker: &&Acker| acker.has < objects;
        let nodes = self.list.iter().filter(lacks).map(|acker| acker.node).collect();
        Piece { nodes, ends_round: true, next_at: Time::ZERO }
    }

    /// Returns the next `most` receivers, by turns, that have not acknowledged the first `objects` objects. After it was
    /// asked, a receiver rests for this time.
    pub(super) fn next(&mut self, now: Time, objects: u32, most: usize, rest: Span) -> Piece {
        self.by_turns = true;
        let lacks = |acker: &Acker| acker.has < objects;
        let (mut nodes, mut at) = (Vec::with_capacity(most), self.next);
        while let Some(acker) = self.list.get_mut(at).filter(|_| nodes.len() < most) {
            if lacks(acker) {
                if acker.rests_until > now {
                    break;
                }
                acker.rests_until = now + rest;
                nodes.push(acker.node);
            }
            at += 1;
        }
        let behind = self.list[at..].iter().find(|acker| lacks(acker));
        let is_last = behind.is_none();
        let following = behind.or_else(|| self.list.iter().find(|acker| lacks(acker)));
        let next_at = following.map_or(Time::ZERO, |acker| acker.rests_until);
        self.next = if is_last { 0 } else { at };
        Piece { nodes, ends_round: is_last && core::mem::replace(&mut self.is_whole, true), next_at }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn nodes(ids: &[u32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    const REST: Span = Span::from_secs(2);

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    /// Asks the next `most` receivers for all of one object, at a second at which none rests any more.
    fn ask(ackers: &mut Ackers, seconds: u64, most: usize) -> (Vec<u32>, bool) {
        let piece = ackers.next(at(seconds), 1, most, REST);
        (piece.nodes.iter().map(|node| node.0).collect(), piece.ends_round)
    }

    fn done(ackers: &mut Ackers, node: u32) {
        ackers.acknowledge(ackers.find(NodeId(node)).expect("named"), 1);
    }

    #[test]
    fn every_receiver_that_lacks_something_has_its_turn_in_each_round() {
        let mut ackers = Ackers::new(&nodes(&[9, 4, 7, 2, 5]), 1);
        assert_eq!(ask(&mut ackers, 0, 2), (vec![9, 4], false));
        done(&mut ackers, 9);
        assert_eq!(ask(&mut ackers, 10, 2), (vec![7, 2], false));
        assert_eq!(ask(&mut ackers, 20, 2), (vec![5], true));
        assert_eq!(ask(&mut ackers, 30, 3), (vec![4, 7, 2], false));
        done(&mut ackers, 5);
        assert_eq!(ask(&mut ackers, 40, 3), (vec![], true), "nobody is left for this round");
        assert_eq!(ask(&mut ackers, 50, 3), (vec![4, 7, 2], true), "nobody is behind them");
        assert_eq!(ackers.all(1).nodes, nodes(&[4, 7, 2]));
    }

    #[test]
    fn a_receiver_has_time_to_answer_before_its_next_turn() {
        let mut ackers = Ackers::new(&nodes(&[1, 2, 3]), 2);
        let ask = |ackers: &mut Ackers, seconds| {
            let Piece { nodes, next_at, .. } = ackers.next(at(seconds), 2, 2, REST);
            (nodes.iter().map(|node| node.0).collect::<Vec<_>>(), next_at)
        };
        assert_eq!(ask(&mut ackers, 1), (vec![1, 2], Time::ZERO));
        assert_eq!(ask(&mut ackers, 2), (vec![3], at(3)));
        assert_eq!(ask(&mut ackers, 2), (vec![], at(3)));
        assert_eq!(ask(&mut ackers, 3), (vec![1, 2], at(4)));
        ackers.acknowledge(0, 1);
        assert_eq!(ask(&mut ackers, 4), (vec![3], Time::ZERO), "it has answered");
        assert_eq!(ask(&mut ackers, 4), (vec![1], at(5)));
    }

    #[test]
    fn a_round_that_content_interrupts_does_not_count() {
        let mut ackers = Ackers::new(&nodes(&[1, 2, 3]), 1);
        assert_eq!(ask(&mut ackers, 0, 2), (vec![1, 2], false));
        ackers.interrupt();
        assert_eq!(ask(&mut ackers, 10, 2), (vec![3], false), "the others were asked before");
        ackers.interrupt();
        assert_eq!(ask(&mut ackers, 20, 2), (vec![1, 2], false));
        assert_eq!(ask(&mut ackers, 30, 2), (vec![3], true));
    }

    #[test]
    fn counts_are_those_of_the_list() {
        let mut ackers = Ackers::new(&nodes(&[30, 10, 20]), 3);
        assert_eq!((ackers.find(NodeId(10)), ackers.find(NodeId(11))), (Some(1), None));
        assert_eq!((ackers.lacking(2), ackers.lacking(3)), (3, 3));
        ackers.acknowledge(1, 1);
        assert_eq!((ackers.lacking(2), ackers.lacking(1)), (3, 2));
        ackers.acknowledge(1, 3);
        assert_eq!((ackers.lacking(1), ackers.lacking(2), ackers.lacking(3)), (2, 2, 2));
        ackers.acknowledge(0, 2);
        assert_eq!((ackers.lacking(2), ackers.lacking(3)), (1, 2));
        ackers.set_bereft(0, true);
        ackers.set_bereft(1, true);
        assert!(!ackers.are_bereft());
        ackers.remove(2);
        assert_eq!((ackers.lacking(2), ackers.lacking(3), ackers.len()), (0, 1, 2));
        assert!(ackers.are_bereft() && !ackers.are_done());
        let found = (ackers.find(NodeId(30)), ackers.find(NodeId(20)));
        assert_eq!((found, ackers.lost()), ((Some(0), None), nodes(&[30])));
        ackers.remove(0);
        assert_eq!((ackers.find(NodeId(10)), ackers.has(0)), (Some(0), 3));
        assert!(ackers.are_done() && !ackers.are_bereft() && !ackers.is_empty());
    }

    #[test]
    fn a_receiver_that_leaves_takes_no_turn_of_another() {
        let mut ackers = Ackers::new(&nodes(&[1, 2, 3, 4]), 1);
        assert_eq!(ask(&mut ackers, 0, 2), (vec![1, 2], false));
        ackers.remove(0);
        assert_eq!(ask(&mut ackers, 10, 1), (vec![3], false));
        assert_eq!(ask(&mut ackers, 20, 1), (vec![4], true));
    }
}
