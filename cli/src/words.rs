//! Numbers as text.

use tilewright::search::records::Record;
use tilewright::tuning::report::duration;

/// `13.9 µs ± 9.9 %, confirmed, error 6.4e-7`, or why there is no time.
pub(crate) fn outcome(record: &Record) -> String {
    match record.measurement() {
        Some(found) => {
            let time = duration(found.median_ns * 1e-9);
            let confirmed = if found.is_confirmed { ", confirmed" } else { "" };
            format!("{time} ± {}{confirmed}, error {:.1e}", percent(found.spread), found.max_rel_err)
        }
        None => match &record.outcome {
            tilewright::search::records::Outcome::Failed(reason) => format!("failed: {reason}"),
            tilewright::search::records::Outcome::Measured(_) => unreachable!("it has a measurement"),
        },
    }
}

/// `9.9 %`
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A number of things: `1 record`, `2 records`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The age of something: `3 days`; both times are in seconds since 1970.
pub(crate) fn age(time: u64, now: u64) -> String {
    let seconds = now.saturating_sub(time);
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds >= *length).unwrap_or((1, "second"));
    count((seconds / length) as usize, unit)
}

/// A time in seconds since 1970 as a day: `2026-11-22` (UTC).
pub(crate) fn day(time: u64) -> String {
    // Days count from 1 March of the year 0, where each 400 years are alike and leap days come last.
    let days = time / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_the_calendar() {
        let cases = [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (1_795_317_121, "2026-11-22"),
        ];
        for (time, text) in cases {
            assert_eq!(day(time), text, "{time}");
        }
    }

    #[test]
    fn ages_are_in_the_greatest_unit_that_fits() {
        assert_eq!(age(100, 100), "0 seconds");
        assert_eq!(age(100, 161), "1 minute");
        assert_eq!(age(0, 200_000), "2 days");
        assert_eq!(age(200, 100), "0 seconds", "clocks differ");
    }
}
