//! Pure. Computes which countdown lines players read before their server stops, when, and in which words.
//!
//! The times are true. A late line states the time that is really left, and a missed line is not repeated later.

use agent_api::Announce;
use jiff::{SignedDuration, Timestamp};

pub mod locale;
pub mod placeholder;

/// The remaining times, in seconds, at which a line is sent, longest first. The gaps are wide while there is time to finish a fight, and one
/// second long at the end. The values above five minutes are for countdowns that are configured to be longer.
const STATED_SECONDS: [i64; 16] = [1800, 900, 600, 300, 60, 30, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];

/// The announcement for an agent that supports only English.
#[must_use]
pub fn into_english(announce: Announce) -> Announce {
    let Announce { act, ends, text, short, show, only_empty, in_languages: _ } = announce;
    let (text, short) = (placeholder::into_english(&text), short.as_deref().map(placeholder::into_english));
    Announce { act, ends, text, short, show, only_empty, in_languages: false }
}

/// A line to send to players.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnouncementLine {
    /// When to send the line. At once, if this is not later than now.
    pub at: Timestamp,
    /// The remaining time to state, in whole seconds. See [`format_duration`]. Pass it as `last_announced` to the next call of [`next_line`].
    pub left: SignedDuration,
    /// Whether the line is also shown as a title across the screen: the first line, one minute, and each of the last ten seconds. More titles
    /// would hide the game from players who have minutes left to finish.
    pub is_big: bool,
}

impl AnnouncementLine {
    /// The remaining time to state when the line is sent at `now`, because another line may have had to wait for the server first. `None`: the
    /// countdown is over.
    pub fn left_at(&self, ends: Timestamp, now: Timestamp) -> Option<SignedDuration> {
        let left = whole_seconds(ends.duration_since(now));
        (left > 0).then(|| self.left.min(SignedDuration::from_secs(rounded(left))))
    }
}

/// Whether a line with this remaining time, in seconds, is worth a title.
const fn is_big(left: i64) -> bool {
    left == 60 || left <= 10
}

/// The next line of a countdown, or `None` when no line is left.
///
/// `last_announced` is the remaining time that the last line stated, and `None` before the first line. The first line is due at once, however long the
/// countdown is.
pub fn next_line(ends: Timestamp, last_announced: Option<SignedDuration>, now: Timestamp) -> Option<AnnouncementLine> {
    let left = whole_seconds(ends.duration_since(now));
    if left <= 0 {
        return None;
    }
    let Some(last_announced) = last_announced else {
        return Some(AnnouncementLine { at: now, left: SignedDuration::from_secs(rounded(left)), is_big: true });
    };
    let mark = STATED_SECONDS.into_iter().find(|mark| *mark <= left && *mark < last_announced.as_secs())?;
    let left = SignedDuration::from_secs(mark);
    Some(AnnouncementLine { at: ends.checked_sub(left).unwrap_or(now), left, is_big: is_big(mark) })
}

/// The remaining time in English: `5 minutes`, `1 minute`, `30 seconds`, `4 minutes 50 seconds`, `1 hour 30 minutes`.
pub fn format_duration(left: SignedDuration) -> String {
    let seconds = whole_seconds(left);
    if seconds <= 0 {
        return "a moment".to_owned();
    }
    let parts = [(seconds / 3600, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, unit)| match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Rounds up to whole seconds: 9.97 s are shown as the ten seconds that were announced.
fn whole_seconds(left: SignedDuration) -> i64 {
    left.as_secs() + i64::from(left.subsec_nanos() > 0)
}

/// Rounds to ten seconds above one minute: a first line that is slightly late still states `5 minutes`, not `4 minutes 58 seconds`.
const fn rounded(seconds: i64) -> i64 {
    if seconds > 60 { (seconds + 5) / 10 * 10 } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Timestamp = Timestamp::constant(1_000_000, 0);

    fn left(seconds: i64) -> Timestamp {
        ENDS - SignedDuration::from_secs(seconds)
    }

    /// All remaining times that are stated in a countdown of this length, if each line is sent when it is due.
    fn stated(notice: i64) -> Vec<i64> {
        lines(notice).iter().map(|line| line.left.as_secs()).collect()
    }

    fn lines(notice: i64) -> Vec<AnnouncementLine> {
        let (mut now, mut last, mut stated) = (left(notice), None, Vec::new());
        while let Some(line) = next_line(ENDS, last, now) {
            assert!(line.at >= now, "a line is never due in the past");
            now = line.at;
            last = Some(line.left);
            stated.push(line);
        }
        stated
    }

    #[test]
    fn five_minute_countdown_ends_with_last_ten_seconds() {
        assert_eq!(stated(300), [300, 60, 30, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn countdown_of_other_length_begins_with_its_own_length() {
        assert_eq!(stated(10), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(stated(180)[..3], [180, 60, 30]);
        assert_eq!(stated(1200)[..4], [1200, 900, 600, 300]);
    }

    #[test]
    fn missed_announcement_is_skipped_and_never_shows_past_time() {
        let minute = Some(SignedDuration::from_secs(60));
        // The server hung from the first minute on and answers again with 7.4 s left.
        let late = next_line(ENDS, minute, left(8) + SignedDuration::from_millis(600)).unwrap();
        assert_eq!(late.left.as_secs(), 8);
        // The server hung for a while, but the next mark is still ahead.
        let ahead = next_line(ENDS, minute, left(45)).unwrap();
        assert_eq!((ahead.left.as_secs(), ahead.at), (30, left(30)));
    }

    #[test]
    fn late_first_announcement_shows_actual_remaining_time() {
        let first = |seconds| next_line(ENDS, None, left(seconds)).unwrap().left;
        assert_eq!(format_duration(first(298)), "5 minutes");
        assert_eq!(format_duration(first(245)), "4 minutes 10 seconds");
        assert_eq!(format_duration(first(17)), "17 seconds");
    }

    #[test]
    fn titles_show_first_line_last_minute_and_last_ten_seconds() {
        let big = |notice| -> Vec<i64> {
            lines(notice).iter().filter(|line| line.is_big).map(|line| line.left.as_secs()).collect()
        };
        assert_eq!(big(1200), [1200, 60, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(big(45), [45, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn delayed_announcement_shows_time_remaining_when_sent() {
        let line = next_line(ENDS, Some(SignedDuration::from_secs(60)), left(45)).unwrap();
        let stated = |seconds| line.left_at(ENDS, left(seconds)).map(|left| left.as_secs());
        assert_eq!((stated(30), stated(25), stated(0), stated(-3)), (Some(30), Some(25), None, None));
        let first = next_line(ENDS, None, left(298)).unwrap();
        assert_eq!(first.left_at(ENDS, left(298)).unwrap().as_secs(), 300, "the first line is rounded up");
    }

    #[test]
    fn finished_countdown_announces_no_more_lines() {
        assert_eq!(next_line(ENDS, Some(SignedDuration::from_secs(1)), left(1)), None);
        assert_eq!(next_line(ENDS, None, ENDS), None);
        assert_eq!(next_line(ENDS, None, left(-60)), None);
    }

    #[test]
    fn remaining_times_are_phrased_naturally() {
        let english = |seconds| format_duration(SignedDuration::from_secs(seconds));
        assert_eq!(english(300), "5 minutes");
        assert_eq!(english(60), "1 minute");
        assert_eq!(english(30), "30 seconds");
        assert_eq!(english(1), "1 second");
        assert_eq!(english(5400), "1 hour 30 minutes");
        assert_eq!(english(0), "a moment");
        assert_eq!(format_duration(SignedDuration::from_millis(9_970)), "10 seconds");
    }
}
