//! MFTP's messages as the engines handle them (draft-miller-mftp-spec-03 §12).
//!
//! Blocks and DTUs count from 0 here and from 1 on the wire.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::num::NonZeroU32;

use farcast_core::{Bitmap, Run};
use md5::{Digest, Md5};

use crate::hostset::HostSet;
use crate::proof::{Proof, Token};
use crate::turn::{HeardData, Turn};
use crate::wire;

/// Message: the transmission that it belongs to (0 for group management), and its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Transmission Identifier; together with the server's address it identifies a transmission.
    pub transmission: u32,
    /// Body of the message.
    pub body: Body,
    /// Proof of the message's origin ([`proof`](crate::proof); farcast's own, never with DATA).
    pub proof: Option<Proof>,
}

impl Message {
    /// Creates a message without a proof, as in the draft.
    pub const fn new(transmission: u32, body: Body) -> Self {
        Self { transmission, body, proof: None }
    }
}

/// Body of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A client asks a server for its public groups.
    Query(Query),
    /// The server asks clients to listen to a public group.
    Join(Join),
    /// The server asks clients to stop listening to a group.
    Leave(Leave),
    /// A host asks whether another host is there.
    Echo(Echo),
    /// A host answers an echo with all of it except the host list.
    EchoResponse(Echo),
    /// A transmission is about to begin, or goes on.
    Announce(Box<Announce>),
    /// A client wants to take part, or declines.
    Registration(Registration),
    /// One or more DTUs.
    Data(Data),
    /// The server asks which DTUs are missing.
    StatusRequest(StatusRequest),
    /// A client misses DTUs of a block.
    Nak(Nak),
    /// A client has answered a status request of type ALL.
    Ack(Ack),
    /// A client has the whole product.
    Done(Done),
    /// The server confirms Dones; without a list, the transmission is over.
    Completion(Completion),
    /// The server gives up, for all clients or for some.
    Abort(Abort),
    /// A client leaves.
    Quit(Quit),
    /// Aggregators may forget the transmission.
    End(End),
    /// The server grants a client the token of its session (farcast's own).
    Grant(Grant),
}

/// Client identifier: its IPv4 address, or a Global ID in the class E range 240.0.0.0/4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ClientId {
    /// Derives the Global ID of a receiver's name: 28 bits of the name's MD5 digest behind the class E prefix.
    pub fn from_name(name: &str) -> Self {
        Self::global(name.as_bytes())
    }

    /// Derives the id of a receiver without a name: its IPv4 address, or a Global ID made from its IPv6 address.
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self(v4.to_bits()),
            IpAddr::V6(v6) => Self::global(&v6.octets()),
        }
    }

    fn global(octets: &[u8]) -> Self {
        let digest = Md5::digest(octets);
        Self(0xF000_0000 | u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 4)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >> 28 == 0xF {
            write!(f, "GID {:07x}", self.0 & 0x0FFF_FFFF)
        } else {
            Ipv4Addr::from_bits(self.0).fmt(f)
        }
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// QUERY GROUP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// Application whose groups are requested; 1 to 64 bytes.
    pub application: String,
    /// `true` to request groups of all applications.
    pub all: bool,
}

/// JOIN GROUP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// Application whose announcements go to the group; 1 to 64 bytes.
    pub application: String,
    /// Address of the public group.
    pub public: IpAddr,
    /// `true` if all applications' announcements go there.
    pub all: bool,
    /// Clients that are asked; all if absent.
    pub hosts: Option<Vec<ClientId>>,
}

/// LEAVE GROUP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// Address of the group to leave.
    pub public: IpAddr,
    /// Clients that are asked; all if absent.
    pub hosts: Option<Vec<ClientId>>,
}

/// ECHO and ECHO RESPONSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Number chosen by the asking host, returned unchanged.
    pub sequence: u32,
    /// Data of 1 to 4096 bytes, returned unchanged.
    pub data: Option<Vec<u8>>,
    /// Clients that must answer a multicast echo; all if absent. Absent in a response.
    pub hosts: Option<Vec<ClientId>>,
}

/// Group model (draft §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupModel {
    /// Only the clients that the announcement lists.
    Closed,
    /// Any clients that register, up to a limit.
    OpenLimited,
    /// Anybody who listens; no client registers and none is known.
    OpenUnlimited,
}

/// Announce Options.
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of one word on the wire")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnounceOptions {
    /// Group model.
    pub model: GroupModel,
    /// `true` if clients stay in the private group afterwards.
    pub stay_in_group: bool,
    /// `true` if the transmission continues where an earlier one of the same product stopped.
    pub restart: bool,
    /// `true` if clients replace a product that they have already.
    pub overwrite: bool,
    /// `true` if clients may join after data has begun.
    pub late_entry: bool,
}

/// State of a client in an announcement's host list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostState {
    /// The client is invited and has not answered.
    Pending,
    /// The client's registration is accepted.
    Accepted,
    /// The client has declined, and the server knows.
    Declined(DeclineReason),
}

/// Reason for which a client declines (draft §13: 1001 to 1008; one byte on the wire, less 1000).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum DeclineReason {
    /// Not enough disk space.
    Disk = 1,
    /// Not enough memory.
    Memory = 2,
    /// A problem of the client's system.
    System = 3,
    /// The client has the product and must not overwrite it.
    AlreadyHave = 4,
    /// There is nothing to restart from, and late entry is not allowed.
    NothingToRestart = 5,
    /// The application is unknown.
    UnknownApplication = 6,
    /// The client is not interested in this sender.
    UnwantedSender = 7,
    /// The client is not interested in this type.
    UnwantedType = 8,
}

impl DeclineReason {
    /// Returns the reason with this number on the wire.
    pub fn from_wire(byte: u8) -> Option<Self> {
        [
            Self::Disk,
            Self::Memory,
            Self::System,
            Self::AlreadyHave,
            Self::NothingToRestart,
            Self::UnknownApplication,
            Self::UnwantedSender,
            Self::UnwantedType,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == byte)
    }
}

impl fmt::Display for DeclineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "not enough disk space",
            Self::Memory => "not enough memory",
            Self::System => "a problem of its system",
            Self::AlreadyHave => "it has the product and keeps what it has",
            Self::NothingToRestart => "it has nothing to restart from",
            Self::UnknownApplication => "unknown application",
            Self::UnwantedSender => "not interested in this sender",
            Self::UnwantedType => "not interested in this type",
        })
    }
}

/// Reasons of QUIT (from 2001) and ABORT (from 3001), draft §13, as they are on the wire.
pub mod cancel {
    /// QUIT: the client's application stopped it.
    pub const QUIT_APPLICATION: u32 = 2001;
    /// QUIT: the transfer took longer than announced.
    pub const QUIT_TRANSFER_TIMEOUT: u32 = 2002;
    /// QUIT: a problem of the client's system, such as its disk.
    pub const QUIT_SYSTEM: u32 = 2003;
    /// QUIT: too many DTUs were missed.
    pub const QUIT_ERROR_THRESHOLD: u32 = 2004;
    /// ABORT: the server's application stopped it.
    pub const ABORT_APPLICATION: u32 = 3001;
    /// ABORT: the transfer took longer than the limit.
    pub const ABORT_TRANSFER_TIMEOUT: u32 = 3002;
    /// ABORT: no client answers status requests.
    pub const ABORT_STATUS_TIMEOUT: u32 = 3003;
    /// ABORT: a problem of the server's system.
    pub const ABORT_SYSTEM: u32 = 3004;
    /// ABORT to one client: it is not invited (farcast's own).
    pub const ABORT_NOT_INVITED: u32 = 3101;
    /// ABORT to one client: another client has its id (farcast's own).
    pub const ABORT_COLLISION: u32 = 3102;
    /// ABORT: the product changed at its source, so the part that was sent is useless (farcast's own).
    pub const ABORT_SOURCE_CHANGED: u32 = 3103;
    /// ABORT: the product changed at its source, and its new version is sent next (farcast's own).
    pub const ABORT_SOURCE_RENEWED: u32 = 3104;
}

/// ANNOUNCE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announce {
    /// Source address of data.
    pub server: SocketAddr,
    /// Destination address of answers.
    pub response: SocketAddr,
    /// Group that carries data, on the announcement's port.
    pub private: IpAddr,
    /// Maximum time until data begins, in seconds; 0 once it has begun.
    pub announce_duration_s: u32,
    /// Group model and flags.
    pub options: AnnounceOptions,
    /// Application that the announcement is for; 1 to 64 bytes.
    pub application: String,
    /// DTUs in a block.
    pub block_size: u32,
    /// Data rate in bit/s; `u32::MAX` if it is higher or not limited.
    pub data_rate_bps: u32,
    /// Name of the product; 1 to 256 bytes.
    pub product_name: String,
    /// Time in seconds after which a client gives up.
    pub transfer_duration_s: u32,
    /// Product bytes in a DTU.
    pub dtu_size: u32,
    /// Size of the product in bytes.
    pub product_size: u64,
    /// Percentage of missed DTUs at which a client gives up.
    pub error_threshold: Option<u32>,
    /// Data for the application, 1 to 64 bytes.
    pub user_data: Option<Vec<u8>>,
    /// Clients that are invited or accepted.
    pub hosts: Option<Vec<(ClientId, HostState)>>,
    /// Clients in one state in a short form (farcast's own).
    pub host_set: Option<HostSet>,
    /// Window in milliseconds over which clients spread their answers.
    pub backoff_window_ms: Option<u32>,
    /// Digest that commits to the whole product (farcast's own).
    pub product_id: Option<[u8; 32]>,
    /// Maximum number of parity symbols of a block (farcast's own).
    pub parity_symbols: Option<u32>,
    /// Commitment to the key that the server shows when the transmission is over. Its presence means that the server
    /// grants tokens (farcast's own).
    pub commitment: Option<Proof>,
    /// Clients that register or report now, where not all may speak at once (farcast's own).
    pub turn: Option<Turn>,
}

/// Entry for one client in a REGISTRATION; an aggregator sends several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrationEntry {
    /// Identifier of the client.
    pub client: ClientId,
    /// Serial number that an aggregator gives the client.
    pub serial: Option<u32>,
    /// Response of the client: it takes part, or declines with a reason.
    pub response: Result<(), DeclineReason>,
}

/// REGISTRATION.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Server that the registration answers.
    pub server: SocketAddr,
    /// Entries of the clients, at least one.
    pub entries: Vec<RegistrationEntry>,
    /// Name of the receiver, 1 to 64 bytes (farcast's own, as are the following fields).
    pub name: Option<String>,
    /// Segments that the client holds from an earlier transmission.
    pub segments_held: Option<u32>,
    /// Bytes that the client can buffer while it is busy.
    pub receive_buffer_bytes: Option<u32>,
    /// Nonce by which the client requests a token; the answer repeats it.
    pub nonce: Option<Proof>,
    /// Losses so far, where clients speak by turns.
    pub heard: Option<HeardData>,
    /// Round in which the client was called.
    pub round: Option<u16>,
    /// Number of segments that the client held before the transmission, if it reports the whole product with this message
    /// instead of by a DONE.
    pub complete: Option<u32>,
}

impl Registration {
    /// Creates the registration with which `client` answers `server`, as in the draft: without farcast's own fields.
    pub fn new(server: SocketAddr, client: ClientId, response: Result<(), DeclineReason>) -> Self {
        Self {
            server,
            entries: alloc::vec![RegistrationEntry { client, serial: None, response }],
            name: None,
            segments_held: None,
            receive_buffer_bytes: None,
            nonce: None,
            heard: None,
            round: None,
            complete: None,
        }
    }
}

/// Kind of the payload of a DATA message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataKind {
    /// DTUs of the product.
    Source,
    /// Parity symbols of the block (farcast's own).
    Parity,
}

/// DATA: a run of DTUs of one block, or of its parity symbols; on the wire one message each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Number of the pass, from 1.
    pub pass: u32,
    /// Number of the block, from 0.
    pub block: u32,
    /// Kind of the payload.
    pub kind: DataKind,
    /// DTUs (or parity symbols) within the block, from 0.
    pub dtus: Run,
    /// Payload bytes of each DTU except the last.
    pub len: u16,
    /// Payload bytes of the last DTU, which is shorter at the product's end.
    pub last_len: u16,
}

/// Kind of answer that a status request demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusType {
    /// NAKs only.
    NakOnly,
    /// NAKs, followed by an ACK.
    All,
}

/// STATUS REQUEST.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusRequest {
    /// Pass that the request follows; 0 before data.
    pub pass: u32,
    /// Blocks that the request asks about, from 0.
    pub blocks: Run,
    /// DTUs of each block that the request asks about, from 0.
    pub dtus: Run,
    /// Kind of answer that is demanded.
    pub status: StatusType,
    /// Clients that are asked; all if absent.
    pub hosts: Option<Vec<ClientId>>,
    /// Clients among these that answer, where not all may speak at once (farcast's own).
    pub turn: Option<Turn>,
}

/// NAK RESPONSE: the DTUs of one block that a client misses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nak {
    /// Server that the NAK answers.
    pub server: SocketAddr,
    /// Identifier of the client.
    pub client: ClientId,
    /// Pass of the status request.
    pub pass: u32,
    /// Number of the block, from 0.
    pub block: u32,
    /// Bitmap of the missing DTUs. Its length is the block's number of DTUs, rounded up to a multiple of 8.
    pub missing: Bitmap,
    /// Number of the block's parity symbols that the client holds (farcast's own).
    pub parity_held: u32,
    /// Number of missing DTUs that came but were not stored, so that they were not lost on the way (farcast's own).
    pub unstored: u32,
}

/// Merged NAKs of many clients of an open-unlimited group for one block that arrive at one instant. Only simulated
/// populations use them; they are never on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Naks {
    /// Server that the NAKs answer.
    pub server: SocketAddr,
    /// Pass of the status request.
    pub pass: u32,
    /// Number of the block, from 0.
    pub block: u32,
    /// Union of the missing DTUs; a bitmap as long as that of a single NAK.
    pub missing: Bitmap,
    /// Number of NAKs.
    pub count: u64,
}

/// ACK RESPONSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Server that the ACK answers.
    pub server: SocketAddr,
    /// Pass of the status request.
    pub pass: u32,
    /// Blocks that the request asked about.
    pub blocks: Run,
    /// Identifier of the client.
    pub client: ClientId,
}

/// DONE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// Server that the message answers.
    pub server: SocketAddr,
    /// Identifier of the client.
    pub client: ClientId,
    /// Total number of DTUs that the client requested again.
    pub naked_dtus: u32,
    /// Duration of the transfer in seconds.
    pub duration_s: u32,
    /// Round in which the client was called (farcast's own).
    pub round: Option<u16>,
}

/// COMPLETION.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Clients whose Done is confirmed; if absent, the transmission is over for everyone.
    pub hosts: Option<Vec<ClientId>>,
    /// Clients that register or report now, where not all may speak at once (farcast's own).
    pub turn: Option<Turn>,
}

/// ABORT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abort {
    /// Reason, one of [`cancel`].
    pub reason: u32,
    /// Clients that are addressed; all if absent.
    pub hosts: Option<Vec<ClientId>>,
    /// Reason as text, 1 to 256 bytes (farcast's own).
    pub text: Option<String>,
}

/// QUIT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quit {
    /// Reason, one of [`cancel`].
    pub reason: u32,
    /// Identifier of the client. The draft has the server guess it from the source address.
    pub client: Option<ClientId>,
    /// Reason as text, 1 to 256 bytes (farcast's own).
    pub text: Option<String>,
}

/// END.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Server of the transmission.
    pub server: SocketAddr,
    /// Destination address of answers.
    pub response: SocketAddr,
}

/// GRANT: the server's answer to a registration, sent to its source alone. Its proof shows that the server has seen the
/// registration's nonce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Client that is addressed.
    pub client: ClientId,
    /// Token with which the client proves its messages from now on.
    pub token: Token,
}

impl farcast_core::Message for Message {
    fn segments(&self) -> NonZeroU32 {
        match &self.body {
            Body::Data(data) => NonZeroU32::new(data.dtus.count()).unwrap_or(NonZeroU32::MIN),
            _ => NonZeroU32::MIN,
        }
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Body::Data(data) = &self.body else { return (self, None) };
        let (head, Some(tail)) = data.dtus.split(count) else { return (self, None) };
        let part =
            |dtus, last_len| Self::new(self.transmission, Body::Data(Data { dtus, last_len, ..*data }));
        (part(head, data.len), Some(part(tail, data.last_len)))
    }

    fn wire_len(&self, segment: u32) -> usize {
        wire::encoded_len(self, segment)
    }
}

impl Data {
    /// Returns the payload bytes of the DTU `segment` places behind the first.
    pub fn payload_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.dtus.count() { self.last_len } else { self.len })
    }
}
