//! Keys of `[protocol]` that several protocols have.

use farcast_core::setting::SettingValue;
use farcast_core::units::Bytes;
use farcast_core::{Setting, SettingSource as _};
use farcast_scenario::{DocumentError, Reader};

use crate::star::StarError;

/// Reads the octets that the links add to each datagram.
pub(super) fn overhead(table: &mut Reader<'_>) -> Result<u16, DocumentError> {
    let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(28))?;
    u16::try_from(overhead)
        .map_err(|_| table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"))
}

/// Reports values that follow from other settings as defaults of keys that `table` lacks.
///
/// # Errors
/// None that the reading of the settings has not found.
pub(super) fn show(
    table: &mut Reader<'_>,
    in_effect: Vec<(&'static Setting, SettingValue)>,
) -> Result<(), DocumentError> {
    for (setting, value) in in_effect.into_iter().filter(|(setting, _)| !setting.otherwise.is_empty()) {
        // A given value was read, and may be a word for none.
        if !table.has(setting.key) {
            table.value(setting, Some(value))?;
        }
    }
    Ok(())
}

/// Turns an engine's error into one of the simulator.
pub(super) fn in_words(error: impl std::error::Error) -> StarError {
    StarError::Engine(error.to_string())
}
