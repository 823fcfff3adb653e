//! Messages of `farcast send` at its end.

use std::cmp::Reverse;

use farcast_core::{Span, Time};
use farcast_files::Compressed;
use farcast_mftp::{ClientId, Member, MemberState, Sender};
use farcast_report::transfer::Receiver;
use farcast_transfer::sealing;
use farcast_transfer::send::{Verdict, has_it, standing};
use serde_json::{Value, json};

use super::advice::Advice;
use super::{Exit, SendReport};
use crate::progress::receivers::{MOST_ROWS, few, left_out};
use crate::progress::{loss_percent, overhead, part_of, percent, rate, size, times_the_size};
use crate::send::{changed_fields, compressed_sentence};
use crate::table::{Align, Table};
use crate::text::Text;

/// Facts on a transfer that its report lacks.
#[derive(Clone, Copy)]
pub(super) struct Closing<'a> {
    /// Octets of the product.
    pub(super) size: u64,
    /// Set if no receiver registers, so that none is known.
    pub(super) unlimited: bool,
    /// Savings of `--compress`.
    pub(super) compressed: Option<&'a Compressed>,
}

/// Returns a table of the known receivers, or `None` without any. Of many it has those that came last, or not at all.
pub(super) fn closing_table(report: &SendReport, draft: bool) -> Option<Text> {
    report.sender.members().next()?;
    let stats = report.sender.stats();
    let mut table = Table::new(&[
        ("receiver", Align::Left),
        ("state", Align::Left),
        ("time", Align::Right),
        ("asked again", Align::Right),
        ("loss", Align::Right),
        ("NAKs", Align::Right),
    ]);
    let last = |&(_, member): &(ClientId, &Member)| {
        let has = has_it(member, draft);
        (has, Reverse(member.done_at.filter(|_| has)))
    };
    let (shown, more) = few(report.sender.members(), MOST_ROWS, last);
    for (id, member) in shown {
        let time = member.done_at.map_or_else(|| "-".into(), |at| at.since(Time::ZERO).to_string());
        table.row([
            member.label.clone(),
            standing(member, draft),
            time,
            format!("{} DTUs", member.lost_dtus),
            percent(member.lost_dtus, member.sent_dtus(report.sender.received_by(id))),
            member.naks.to_string(),
        ]);
    }
    let sent_any = stats.dtus_per_pass.iter().any(|&dtus| dtus > 0);
    let believed = (draft && sent_any).then_some("receivers were believed without proof, as --draft says");
    Some(table.render().then(Text::lines(left_out(more))).paragraph(Text::lines(believed)).blank())
}

/// Returns the result of the transfer in a sentence: the last line.
pub(super) fn closing_sentence(report: &SendReport, closing: Closing<'_>) -> String {
    let compressed = closing.compressed.map(|brought| format!("; {}", compressed_sentence(brought)));
    let unknown = if closing.unlimited {
        "; who has it is not known, as nobody registers with --unlimited"
    } else {
        ""
    };
    format!("{}{}{unknown}", what_it_took(report, closing.size), compressed.unwrap_or_default())
}

fn what_it_took(report: &SendReport, size_bytes: u64) -> String {
    let wire = report.traffic.sent.octets;
    let whole = size(size_bytes);
    let Some(brought) = brought(&report.sender, size_bytes) else {
        let nothing = "no data was sent";
        let sealed = sealing::closing(report.seal.as_ref());
        return format!("{whole} in {}, {nothing}, {} on the wire, -; {sealed}", took(report), size(wire));
    };
    let passes = match report.sender.stats().dtus_per_pass.len() {
        1 => "1 pass".into(),
        passes => format!("{passes} passes"),
    };
    format!(
        "{whole} in {} ({} of data), {passes}, {} on the wire, {}, {}; {}",
        took(report),
        report.data_duration,
        size(wire),
        overhead(wire, size_bytes),
        rate(brought, took(report)),
        sealing::closing(report.seal.as_ref()),
    )
}

/// Returns the time until the receivers that came had everything. The sender may have stayed for others.
fn took(report: &SendReport) -> Span {
    let absent = report.sender.awaited().next().is_some();
    let last = report.sender.members().filter_map(|(_, member)| member.done_at).max();
    last.filter(|_| absent).map_or(report.duration, |at| at.since(Time::ZERO))
}

/// Returns the known receivers, for the page.
pub(super) fn receivers(sender: &Sender, draft: bool) -> Vec<Receiver> {
    let one = |id, member: &Member| Receiver {
        name: member.label.clone(),
        state: standing(member, draft),
        complete: has_it(member, draft),
        time_s: member.done_at.map(Time::as_secs_f64),
        asked: Some(member.lost_dtus),
        loss_percent: loss_percent(member.lost_dtus, member.sent_dtus(sender.received_by(id))),
        requests: Some(member.naks),
    };
    sender.members().map(|(id, member)| one(id, member)).collect()
}

/// Returns the bytes of the product that were new to the receiver that is done and lacked the most before. Without
/// registration no receiver is known, and the result is what was sent. Returns `None` if no data was sent.
fn brought(sender: &Sender, size: u64) -> Option<u64> {
    let sent: u64 = sender.stats().dtus_per_pass.iter().sum();
    let segments = u64::from(sender.geometry().segments());
    let done = sender.members().filter(|(_, member)| member.state == MemberState::Done);
    let lacked = done.map(|(_, member)| segments.saturating_sub(member.held.into())).max();
    let lacked = if sender.members().next().is_none() { segments } else { lacked.unwrap_or(0) };
    (sent > 0).then(|| part_of(size, lacked.min(sent), segments))
}

pub(super) fn summary(report: &SendReport, name: &str, size: u64, verdict: &Verdict, draft: bool) -> Value {
    let stats = report.sender.stats();
    let members: Vec<Value> = report
        .sender
        .members()
        .map(|(id, member)| {
            json!({
                "receiver": member.label,
                "state": standing(member, draft),
                "complete": has_it(member, draft),
                "proven": member.is_proven(),
                "time_s": member.done_at.map(Time::as_secs_f64),
                "naked_dtus": member.lost_dtus,
                "loss_percent": loss_percent(member.lost_dtus, member.sent_dtus(report.sender.received_by(id))),
                "dtus_dropped_unstored": member.unstored_dtus,
                "naks": member.naks,
            })
        })
        .collect();
    let rejects: Vec<Value> = report
        .sender
        .rejects()
        .iter()
        .map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n }))
        .collect();
    json!({
        "product": name,
        "outcome": verdict.word,
        "error": report.error.as_ref().map(ToString::to_string),
        "exit_code": Exit::of(verdict.outcome) as u8,
        "size_bytes": size,
        "time_s": took(report).as_secs_f64(),
        "data_time_s": report.data_duration.as_secs_f64(),
        "round_trip_s": report.sender.round_trip().as_secs_f64(),
        "passes": stats.dtus_per_pass.len(),
        "dtus_per_pass": stats.dtus_per_pass,
        "parity_dtus": stats.parity_sent,
        "wire_bytes": report.traffic.sent.octets,
        "wire_bytes_over_size": times_the_size(report.traffic.sent.octets, size),
        "datagrams": report.traffic.sent.datagrams,
        "left_out_segments": report.sender.left_out(),
        "heard_bytes": report.traffic.heard,
        "naks": stats.naks,
        "status_requests": stats.status_requests,
        "malformed_datagrams": report.malformed,
        "seal": sealing::summary(report.seal.as_ref()),
        "rejected_messages": rejects,
        "changed": changed_fields(&report.changed),
        "advice": Advice::of(&report.sender).map(|advice| advice.summary(&report.sender)),
        "receivers": members,
    })
}
