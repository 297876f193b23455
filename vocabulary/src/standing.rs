//! The order of tuning records: which one is the better of two that are of the same program, shape and machine.
//!
//! Look-ups, pruning, tools, reports and the macro that ships records go by this order. A time that was measured alone may be
//! lucky, and times of different hours do not compare. The winner of a comparison at the end of a run therefore comes before all
//! others, whatever their times are. Without a winner, and after it, records come in the order of their times.

use std::cmp::Ordering;

/// How a record compares with the others of its program, shape and machine, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It won the last comparison at the end of a run.
    Winner,
    /// No comparison has had a winner yet.
    Open,
    /// Another record won the last comparison.
    Beaten,
    /// Its schedule was timed again later, for a comparison or afterwards.
    Superseded,
}

/// A record with a time, as far as its order depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed<T> {
    /// When it was made, in seconds since 1970.
    pub time: u64,
    /// Its median time, in nanoseconds.
    pub median_ns: f64,
    /// Whether it won a comparison.
    pub is_confirmed: bool,
    /// The schedule.
    pub trace: T,
}

/// The positions of records of one program, shape and machine, the best first, and how each compares.
pub fn rank<T: PartialEq>(records: &[Timed<T>]) -> Vec<(usize, Standing)> {
    let mut by_time: Vec<usize> = (0..records.len()).collect();
    // Files may have been merged in any order.
    by_time.sort_by_key(|position| records[*position].time);
    let winner = by_time.iter().rposition(|position| records[*position].is_confirmed);
    let is_timed_later = |place: usize| {
        let trace = &records[by_time[place]].trace;
        by_time[place + 1..].iter().any(|later| records[*later].trace == *trace)
    };
    let standing = |place: usize| match winner {
        None => Standing::Open,
        Some(winner) if winner == place => Standing::Winner,
        Some(_) if is_timed_later(place) => Standing::Superseded,
        Some(_) => Standing::Beaten,
    };
    let mut ranked: Vec<(usize, Standing)> =
        by_time.iter().enumerate().map(|(place, position)| (*position, standing(place))).collect();
    let key = |(position, standing): &(usize, Standing)| {
        let Timed { is_confirmed, median_ns, .. } = records[*position];
        (*standing, is_confirmed, median_ns)
    };
    ranked.sort_by(|a, b| better_first(key(a), key(b)));
    ranked
}

/// Compares two records by their standing, whether they won any comparison, and their times in nanoseconds.
pub fn better_first(a: (Standing, bool, f64), b: (Standing, bool, f64)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)).then_with(|| a.2.total_cmp(&b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(time: u64, median_ns: f64, is_confirmed: bool, trace: &str) -> Timed<&str> {
        Timed { time, median_ns, is_confirmed, trace }
    }

    #[test]
    fn the_last_winner_comes_first_and_then_times_decide() {
        let records = [
            timed(1, 5.0, false, "a"),
            timed(4, 9.0, true, "b"),
            timed(2, 7.0, true, "c"),
            timed(3, 6.0, false, "b"),
        ];
        let expected =
            [(1, Standing::Winner), (2, Standing::Beaten), (0, Standing::Beaten), (3, Standing::Superseded)];
        assert_eq!(rank(&records), expected);
    }

    #[test]
    fn without_a_winner_the_shortest_time_comes_first() {
        let records = [timed(1, 5.0, false, "a"), timed(2, 4.0, false, "b"), timed(0, 6.0, false, "c")];
        assert_eq!(rank(&records).iter().map(|(position, _)| *position).collect::<Vec<_>>(), [1, 0, 2]);
    }
}
