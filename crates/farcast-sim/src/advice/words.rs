//! Words of advice: names of settings, and quantities.

use farcast_core::setting::{OptionForm, SettingKind, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{BitRate, Setting, Span};
use farcast_scenario::links::ReturnCapacity;

/// Names by which a user sets what a setting is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Naming {
    /// Keys of a scenario.
    Keys,
    /// Options of a command.
    Options,
}

impl Naming {
    /// Returns the request to give settings these values, or a value of the user's.
    pub(super) fn set(self, changes: &[(&Setting, Option<SettingValue>)]) -> String {
        let verb = if self == Self::Keys { "set" } else { "give" };
        let all: Vec<String> =
            changes.iter().map(|(setting, value)| self.assignment(setting, value.as_ref())).collect();
        format!("{verb} {}", all.join(" and "))
    }

    fn assignment(self, setting: &Setting, value: Option<&SettingValue>) -> String {
        let name = self.name(setting);
        match (self, value.map(|value| self.value(setting, value))) {
            (_, None) => format!("another {name}"),
            (Self::Keys, Some(value)) => format!("{name} = {value}"),
            (Self::Options, Some(value)) => format!("{name} {value}").trim_end().into(),
        }
    }

    /// Returns the request to leave a setting out.
    pub(super) fn leave_out(self, setting: &Setting) -> String {
        format!("leave out {}", self.name(setting))
    }

    pub(super) fn name(self, setting: &Setting) -> String {
        match (self, setting.option) {
            (Self::Keys, _) => format!("protocol.{}", setting.key),
            (Self::Options, _) => format!("--{}", setting.name()),
        }
    }

    fn value(self, setting: &Setting, value: &SettingValue) -> String {
        if let Some(OptionForm::Flag(_)) = setting.option.map(|option| option.form)
            && self == Self::Options
        {
            return String::new();
        }
        let octets = matches!(setting.kind, SettingKind::Octets(..));
        match (self, value) {
            (Self::Keys, SettingValue::Integer(octets_of)) if octets => format!("\"{octets_of} B\""),
            (_, SettingValue::Probability(part)) => part.get().to_string(),
            (Self::Options, SettingValue::Word(word)) => (*word).into(),
            (_, SettingValue::Integer(_) | SettingValue::Flag(_)) => value.to_string(),
            _ => format!("\"{}\"", value.exact()),
        }
    }
}

/// Returns a number with commas between its thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns octets as a person writes them.
pub(super) fn amount(octets: f64) -> String {
    Bytes(octets as u64).to_string()
}

/// Returns a share as a percentage of two digits.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        all if all >= 99.5 => "nearly all".into(),
        some if some >= 9.95 => format!("{some:.0} %"),
        some if some >= 0.95 => format!("{some:.1} %").replace(".0 %", " %"),
        few => format!("{few:.2} %"),
    }
}

/// Returns a time that something takes at least, of which no more than two digits tell.
pub(super) fn least(span: Span) -> String {
    match span.as_secs_f64() {
        hours if hours >= 7200.0 => format!("{:.0} h", (hours / 3600.0).floor()),
        minutes if minutes >= 120.0 => format!("{:.0} min", (minutes / 60.0).floor()),
        seconds if seconds >= 10.0 => format!("{:.0} s", seconds.floor()),
        seconds if seconds >= 1.0 => {
            format!("{:.1} s", (seconds * 10.0).floor() / 10.0).replace(".0 s", " s")
        }
        short => format!("{:.0} ms", short * 1000.0),
    }
}

/// Returns the verb and the amount that a return carries.
pub(super) fn carries(back: &ReturnCapacity) -> String {
    match back.messages_per_s {
        Some(messages) => format!("carries at most {messages:.0} messages a second"),
        None => format!("carries {} a second", amount(back.rate.as_bps() as f64 / 8.0)),
    }
}

/// Returns a rate of two digits, not above this one.
pub(super) fn rounded_down(bps: f64) -> Option<BitRate> {
    let unit = 10_f64.powi(bps.max(1.0).log10().floor() as i32 - 1).max(1.0);
    BitRate::from_bps(((bps / unit).floor() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!([7, 999, 1_000, 1_234_567].map(count), ["7", "999", "1,000", "1,234,567"]);
        let spans = [280, 1_500, 14_500, 125_000, 7_300_000].map(|ms| least(Span::from_millis(ms)));
        assert_eq!(spans, ["280 ms", "1.5 s", "14 s", "2 min", "2 h"]);
        let shares = [0.001, 0.01, 0.077, 0.5, 0.9999].map(percent);
        assert_eq!(shares, ["0.10 %", "1 %", "7.7 %", "50 %", "nearly all"]);
        let rates = [14_715.0, 9.0, 286_900.0].map(|bps| rounded_down(bps).map(BitRate::exact));
        assert_eq!(rates.map(Option::unwrap), ["14 kbit/s", "9 bit/s", "280 kbit/s"]);
    }
}
