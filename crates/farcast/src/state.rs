//! What a sender remembers between runs: which receivers of a transfer have everything.
//!
//! A sender that was killed and is started again with the same command must not wait for receivers that were
//! done and have gone. The file is removed when everyone has everything.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use farcast_files::ProductId;
use farcast_mftp::ClientId;
use serde_json::{Value, json};

/// The memory of one transfer: a product sent to a group.
#[derive(Debug)]
pub(crate) struct State {
    path: Option<PathBuf>,
    done: Vec<ClientId>,
}

impl State {
    /// What is remembered of sending `product` to `group`.
    pub(crate) fn load(product: ProductId, group: SocketAddr) -> Self {
        let name = format!(
            "{}-{}.json",
            &product.to_string()[..16],
            group.to_string().replace([':', '[', ']'], "_")
        );
        let path = directory().map(|directory| directory.join(name));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let done =
            text.and_then(|text| serde_json::from_str::<Value>(&text).ok()).map_or_else(Vec::new, |value| {
                let ids = value["done"].as_array().cloned().unwrap_or_default();
                ids.iter()
                    .filter_map(Value::as_u64)
                    .filter_map(|id| u32::try_from(id).ok().map(ClientId))
                    .collect()
            });
        Self { path, done }
    }

    /// The receivers that have everything.
    pub(crate) fn done(&self) -> &[ClientId] {
        &self.done
    }

    /// Remembers that `client` has everything.
    pub(crate) fn add(&mut self, client: ClientId) {
        self.done.push(client);
        let Some(path) = &self.path else { return };
        let ids: Vec<u32> = self.done.iter().map(|client| client.0).collect();
        // Without this memory a restarted sender still works; it only waits for those who have gone.
        if let Some(directory) = path.parent()
            && fs::create_dir_all(directory).is_ok()
        {
            let fresh = path.with_extension("new");
            let _ =
                fs::write(&fresh, json!({ "done": ids }).to_string()).and_then(|()| fs::rename(&fresh, path));
        }
    }

    /// Forgets: the transfer is over.
    pub(crate) fn forget(&self) {
        if let Some(path) = &self.path {
            // It may never have been written.
            let _ = fs::remove_file(path);
        }
    }
}

/// `$XDG_STATE_HOME/farcast`, or `~/.local/state/farcast`.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line is no engine: where state goes is the environment's say"
)]
fn directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var(name).ok().map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("farcast"))
}
