//! MFTP's messages as the engines speak them (draft-miller-mftp-spec-03 §12).
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

use crate::proof::{Proof, Token};
use crate::wire;

/// A message: the transmission that it belongs to (0 for group management), and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The Transmission Identifier; together with the server's address it names a transmission.
    pub transmission: u32,
    /// What it says.
    pub body: Body,
    /// What shows that it comes from whom it names ([`proof`](crate::proof); farcast's own, never with DATA).
    pub proof: Option<Proof>,
}

impl Message {
    /// A message without a proof: the draft's way.
    pub const fn new(transmission: u32, body: Body) -> Self {
        Self { transmission, body, proof: None }
    }
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A client asks a server for its public groups.
    Query(Query),
    /// The server asks clients to listen to a public group.
    Join(Join),
    /// The server asks clients to stop listening to a group.
    Leave(Leave),
    /// Asks whether a host is there.
    Echo(Echo),
    /// The answer to an echo: everything but its host list.
    EchoResponse(Echo),
    /// A transmission is about to begin, or goes on.
    Announce(Box<Announce>),
    /// A client wants to take part, or declines.
    Registration(Registration),
    /// One or more DTUs.
    Data(Data),
    /// The server asks what is missing.
    StatusRequest(StatusRequest),
    /// A client misses DTUs of a block.
    Nak(Nak),
    /// A client has answered a status request of type ALL.
    Ack(Ack),
    /// A client has everything.
    Done(Done),
    /// The server confirms who is done; without a list, the transmission is over.
    Completion(Completion),
    /// The server gives up, for all or for some.
    Abort(Abort),
    /// A client leaves.
    Quit(Quit),
    /// Aggregators may forget the transmission.
    End(End),
    /// The server hands a client the token of its session (farcast's own).
    Grant(Grant),
}

/// A client's identity: its IPv4 address, or a Global ID in the class E range 240.0.0.0/4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The Global ID of a receiver's name: 28 bits of the name's MD5 digest behind the class E prefix.
    pub fn from_name(name: &str) -> Self {
        Self::global(name.as_bytes())
    }

    /// The id of a receiver without a name: its IPv4 address, or a Global ID made from its IPv6 address.
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
    /// The application whose groups are wanted; 1 to 64 bytes.
    pub application: String,
    /// Whether groups of all applications are wanted.
    pub all: bool,
}

/// JOIN GROUP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// The application whose announcements go there; 1 to 64 bytes.
    pub application: String,
    /// The public address.
    pub public: IpAddr,
    /// Whether all applications' announcements go there.
    pub all: bool,
    /// Whom it is for; everyone if absent.
    pub hosts: Option<Vec<ClientId>>,
}

/// LEAVE GROUP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// The group to leave.
    pub public: IpAddr,
    /// Whom it is for; everyone if absent.
    pub hosts: Option<Vec<ClientId>>,
}

/// ECHO and ECHO RESPONSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Chosen by the asker, returned as it is.
    pub sequence: u32,
    /// 1 to 4096 bytes to be returned as they are.
    pub data: Option<Vec<u8>>,
    /// Who is to answer a multicast echo; all if absent. Absent in a response.
    pub hosts: Option<Vec<ClientId>>,
}

/// Who may take part (draft §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupModel {
    /// Only the clients that the announcement lists.
    Closed,
    /// Whoever registers, up to a limit.
    OpenLimited,
    /// Whoever listens; nobody registers and nobody is known.
    OpenUnlimited,
}

/// The Announce Options.
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of one word on the wire")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnounceOptions {
    /// Who may take part.
    pub model: GroupModel,
    /// Clients stay in the private group afterwards.
    pub stay_in_group: bool,
    /// The transmission goes on where an earlier one of the same product stopped.
    pub restart: bool,
    /// Clients replace a product that they have already.
    pub overwrite: bool,
    /// Clients may join after data began.
    pub late_entry: bool,
}

/// A client's standing in an announcement's host list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Invited, has not answered.
    Pending,
    /// Its registration is accepted.
    Accepted,
    /// It declined, and the server knows.
    Declined(DeclineReason),
}

/// Why a client declines (draft §13: 1001 to 1008; one byte on the wire, less 1000).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum DeclineReason {
    /// Not enough disk space.
    Disk = 1,
    /// Not enough memory.
    Memory = 2,
    /// Something in the client's system.
    System = 3,
    /// It has the product and must not overwrite it.
    AlreadyHave = 4,
    /// Nothing to restart from, and late entry is not allowed.
    NothingToRestart = 5,
    /// The application is not known.
    UnknownApplication = 6,
    /// Not interested in this sender.
    UnwantedSender = 7,
    /// Not interested in this type.
    UnwantedType = 8,
}

impl DeclineReason {
    /// The reason with this number on the wire.
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

/// Reasons of QUIT (2001 on) and ABORT (3001 on), draft §13, as they are on the wire.
pub mod cancel {
    /// QUIT: the client's application stopped it.
    pub const QUIT_APPLICATION: u32 = 2001;
    /// QUIT: the transfer took longer than announced.
    pub const QUIT_TRANSFER_TIMEOUT: u32 = 2002;
    /// QUIT: something in the client's system, such as its disk.
    pub const QUIT_SYSTEM: u32 = 2003;
    /// QUIT: too many DTUs were missed.
    pub const QUIT_ERROR_THRESHOLD: u32 = 2004;
    /// ABORT: the server's application stopped it.
    pub const ABORT_APPLICATION: u32 = 3001;
    /// ABORT: the transfer took longer than the limit.
    pub const ABORT_TRANSFER_TIMEOUT: u32 = 3002;
    /// ABORT: nobody answers status requests.
    pub const ABORT_STATUS_TIMEOUT: u32 = 3003;
    /// ABORT: something in the server's system.
    pub const ABORT_SYSTEM: u32 = 3004;
    /// ABORT to one client: not invited (farcast's own).
    pub const ABORT_NOT_INVITED: u32 = 3101;
    /// ABORT to one client: another client has its id (farcast's own).
    pub const ABORT_COLLISION: u32 = 3102;
    /// ABORT: the product changed at its source, so what was sent of it is of no use (farcast's own).
    pub const ABORT_SOURCE_CHANGED: u32 = 3103;
    /// ABORT: the product changed at its source, and what it is now is sent next (farcast's own).
    pub const ABORT_SOURCE_RENEWED: u32 = 3104;
}

/// ANNOUNCE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announce {
    /// Where the data comes from.
    pub server: SocketAddr,
    /// Where answers go.
    pub response: SocketAddr,
    /// The group that carries data, on the announcement's port.
    pub private: IpAddr,
    /// Seconds until data begins, at most; 0 once it has.
    pub announce_duration_s: u32,
    /// Model and flags.
    pub options: AnnounceOptions,
    /// Which application this is for; 1 to 64 bytes.
    pub application: String,
    /// DTUs in a block.
    pub block_size: u32,
    /// bit/s; `u32::MAX` where it is more or not limited.
    pub data_rate_bps: u32,
    /// What the product is called; 1 to 256 bytes.
    pub product_name: String,
    /// Seconds after which a client gives up.
    pub transfer_duration_s: u32,
    /// Product bytes in a DTU.
    pub dtu_size: u32,
    /// Bytes.
    pub product_size: u64,
    /// Per cent of missed DTUs at which a client gives up.
    pub error_threshold: Option<u32>,
    /// 1 to 64 bytes for the application.
    pub user_data: Option<Vec<u8>>,
    /// Who is invited or accepted.
    pub hosts: Option<Vec<(ClientId, Standing)>>,
    /// Milliseconds over which clients spread their answers.
    pub backoff_window_ms: Option<u32>,
    /// What the product is: a digest that commits to all of it (farcast's own).
    pub product_id: Option<[u8; 32]>,
    /// Parity symbols that a block may have (farcast's own).
    pub parity_symbols: Option<u32>,
    /// The server grants tokens, and shows the key of this commitment when the transmission is over (farcast's own).
    pub commitment: Option<Proof>,
}

/// One client in a REGISTRATION; an aggregator sends several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrationEntry {
    /// Who.
    pub client: ClientId,
    /// An aggregator's serial number for it.
    pub serial: Option<u32>,
    /// Takes part, or declines and why.
    pub response: Result<(), DeclineReason>,
}

/// REGISTRATION.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// The server that it answers.
    pub server: SocketAddr,
    /// At least one client.
    pub entries: Vec<RegistrationEntry>,
    /// The receiver's name, 1 to 64 bytes (farcast's own, as are the following).
    pub name: Option<String>,
    /// Segments that it holds from an earlier transmission.
    pub segments_held: Option<u32>,
    /// Bytes that it can buffer while it is busy.
    pub receive_buffer_bytes: Option<u32>,
    /// The client asks for a token; the answer repeats this.
    pub nonce: Option<Proof>,
}

/// What a DATA message carries.
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
    /// The pass, from 1.
    pub pass: u32,
    /// The block, from 0.
    pub block: u32,
    /// DTUs of the product, or parity symbols.
    pub kind: DataKind,
    /// The DTUs (or parity symbols) within the block, from 0.
    pub dtus: Run,
    /// Payload bytes of each.
    pub len: u16,
    /// Payload bytes of the last, which is shorter at the product's end.
    pub last_len: u16,
}

/// What a status request wants to hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusType {
    /// Only what is missing.
    NakOnly,
    /// That too, and then an ACK.
    All,
}

/// STATUS REQUEST.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusRequest {
    /// The pass that it follows; 0 before data.
    pub pass: u32,
    /// The blocks that it asks about, from 0.
    pub blocks: Run,
    /// The DTUs of each that it asks about, from 0.
    pub dtus: Run,
    /// What is to be answered.
    pub status: StatusType,
    /// Who is asked; everyone if absent.
    pub hosts: Option<Vec<ClientId>>,
}

/// NAK RESPONSE: what a client misses of one block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nak {
    /// The server that it answers.
    pub server: SocketAddr,
    /// Who.
    pub client: ClientId,
    /// The pass of the status request.
    pub pass: u32,
    /// The block, from 0.
    pub block: u32,
    /// The missing DTUs. Its length is the block's number of DTUs rounded up to a multiple of 8.
    pub missing: Bitmap,
    /// Parity symbols of the block that the client holds (farcast's own).
    pub parity_held: u32,
    /// How many of the missing DTUs came and were not stored: they were not lost on the way (farcast's own).
    pub unstored: u32,
}

/// The NAKs of many clients of an open-unlimited group for one block that arrive at one instant, as one: how a
/// simulated population speaks. It is never on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Naks {
    /// The server that they answer.
    pub server: SocketAddr,
    /// The pass of the status request.
    pub pass: u32,
    /// The block, from 0.
    pub block: u32,
    /// The union of the missing DTUs, as long as a single NAK's.
    pub missing: Bitmap,
    /// How many NAKs these are.
    pub count: u64,
}

/// ACK RESPONSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The server that it answers.
    pub server: SocketAddr,
    /// The pass of the status request.
    pub pass: u32,
    /// The blocks that the request asked about.
    pub blocks: Run,
    /// Who.
    pub client: ClientId,
}

/// DONE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// The server that it answers.
    pub server: SocketAddr,
    /// Who.
    pub client: ClientId,
    /// DTUs that it asked for again, in all.
    pub naked_dtus: u32,
    /// Seconds that the transfer took.
    pub duration_s: u32,
}

/// COMPLETION.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Whose Done is confirmed; absent, the transmission is over for everyone.
    pub hosts: Option<Vec<ClientId>>,
}

/// ABORT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abort {
    /// One of [`cancel`].
    pub reason: u32,
    /// Whom it is for; everyone if absent.
    pub hosts: Option<Vec<ClientId>>,
    /// The reason in words, 1 to 256 bytes (farcast's own).
    pub text: Option<String>,
}

/// QUIT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quit {
    /// One of [`cancel`].
    pub reason: u32,
    /// Who. The draft has the server guess it from the source address.
    pub client: Option<ClientId>,
    /// The reason in words, 1 to 256 bytes (farcast's own).
    pub text: Option<String>,
}

/// END.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The server whose transmission it was.
    pub server: SocketAddr,
    /// Where answers went.
    pub response: SocketAddr,
}

/// GRANT: the server's answer to a registration, to its source alone. Its proof shows that it has seen the
/// registration's nonce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Whom it is for.
    pub client: ClientId,
    /// What the client proves itself with from now on.
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
    /// Payload bytes of the DTU `segment` places behind the first.
    pub fn payload_len(&self, segment: u32) -> usize {
        usize::from(if segment + 1 == self.dtus.count() { self.last_len } else { self.len })
    }
}
