//! Which data connections carry which of the owner's files.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, SocketAddr};

use super::{Contents, DataReport, FileId};
use crate::Segment;
use crate::endpoint::{ConnectionId, Endpoint};

/// A file that is sent, and the octet of it with which the stream begins.
#[derive(Clone, Copy, Debug)]
struct Source {
    file: FileId,
    first: u64,
}

/// Files that data connections may yet send octets of: until everything is acknowledged, something may be lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    connections: BTreeMap<ConnectionId, Source>,
    /// What connections that have ended have counted.
    ended: DataReport,
}

impl Sources {
    /// From now on `connection` sends `file` from its octet `first` on.
    pub(super) fn insert(&mut self, connection: ConnectionId, file: FileId, first: u64) {
        self.connections.insert(connection, Source { file, first });
    }

    /// The connection has ended; the file that it sent, if it sent one.
    pub(super) fn remove(&mut self, endpoint: &Endpoint, connection: ConnectionId) -> Option<FileId> {
        let source = self.connections.remove(&connection)?;
        if let Some(connection) = endpoint.connection(connection) {
            self.ended = self.ended.with(connection.stats());
        }
        Some(source.file)
    }

    /// What all of them have counted so far.
    pub(super) fn report(&self, endpoint: &Endpoint) -> DataReport {
        let open = self.connections.keys().filter_map(|&id| endpoint.connection(id));
        open.fold(self.ended, |report, connection| report.with(connection.stats()))
    }

    /// What the payload of a segment is that `endpoint` sends to `destination`.
    pub(super) fn contents<'a>(
        &self,
        endpoint: &'a Endpoint,
        segment: &Segment,
        destination: IpAddr,
    ) -> Contents<'a> {
        if let Some(octets) = endpoint.octets(segment, destination) {
            return Contents::Octets(octets);
        }
        let remote = SocketAddr::new(destination, segment.destination_port);
        let source = endpoint.find(segment.source_port, remote).and_then(|id| self.connections.get(&id));
        source.map_or(Contents::Gone, |source| Contents::File {
            file: source.file,
            offset: source.first + segment.payload.offset,
            len: segment.payload.len,
        })
    }
}
