//! Assignment of the owner's files to data connections.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, SocketAddr};

use super::{Contents, DataReport, FileId};
use crate::Segment;
use crate::endpoint::{ConnectionId, Endpoint};

/// A file that is sent, and its octet at which the stream begins.
#[derive(Clone, Copy, Debug)]
struct SourceFile {
    file: FileId,
    first: u64,
}

/// Files of which data connections may still send octets: until everything is acknowledged, some may be lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    connections: BTreeMap<ConnectionId, SourceFile>,
    /// Counters of connections that have ended.
    ended: DataReport,
}

impl Sources {
    /// Assigns `file` to `connection`, from octet `first` on.
    pub(super) fn insert(&mut self, connection: ConnectionId, file: FileId, first: u64) {
        self.connections.insert(connection, SourceFile { file, first });
    }

    /// Removes a connection that has ended. Returns the file that it sent, if any.
    pub(super) fn remove(&mut self, endpoint: &Endpoint, connection: ConnectionId) -> Option<FileId> {
        let source = self.connections.remove(&connection)?;
        if let Some(connection) = endpoint.connection(connection) {
            self.ended = self.ended.with(connection.stats());
        }
        Some(source.file)
    }

    /// Returns the counters of all connections so far.
    pub(super) fn report(&self, endpoint: &Endpoint) -> DataReport {
        let open = self.connections.keys().filter_map(|&id| endpoint.connection(id));
        open.fold(self.ended, |report, connection| report.with(connection.stats()))
    }

    /// Returns the payload of a segment that `endpoint` sends to `destination`.
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
