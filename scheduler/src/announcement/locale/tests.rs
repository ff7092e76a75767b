//! Pure. Checks each language at the numbers at which its forms change.
//!
//! Each row is written for review by a native speaker.

use super::*;

/// 1, 2, 5, 11, 12, 21, 22, 25, 30 and 59.
const COUNTS: [i64; 10] = [1, 2, 5, 11, 12, 21, 22, 25, 30, 59];

/// A language code, the index of the form that each of [`COUNTS`] needs, the words for minutes and the words for
/// seconds.
type Row = (&'static str, [usize; 10], &'static [&'static str], &'static [&'static str]);

/// The word for each of [`COUNTS`] without its number: minutes first, then seconds.
fn forms(code: &str) -> [Vec<String>; 2] {
    let language = Language::from_code(code).unwrap();
    [60, 1].map(|unit| {
        let word = |count: &i64| {
            language.format_duration(count * unit).trim_start_matches(&count.to_string()).trim().to_owned()
        };
        COUNTS.iter().map(word).collect()
    })
}

fn format(code: &str, seconds: i64) -> String {
    Language::from_code(code).unwrap().format_duration(seconds)
}

#[test]
fn numbers_use_plural_form_of_each_language() {
    const NEVER: [usize; 10] = [0; 10];
    const ONE: [usize; 10] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    const FEW: [usize; 10] = [0, 1, 2, 2, 2, 2, 2, 2, 2, 2];
    const POLISH: [usize; 10] = [0, 1, 2, 2, 2, 2, 1, 2, 2, 2];
    const EAST: [usize; 10] = [0, 1, 2, 2, 2, 0, 1, 2, 2, 2];
    const ROMANIAN: [usize; 10] = [0, 1, 1, 1, 1, 2, 2, 2, 2, 2];
    let table: [Row; 26] = [
        ("cs", FEW, &["minutu", "minuty", "minut"], &["sekundu", "sekundy", "sekund"]),
        ("da", ONE, &["minut", "minutter"], &["sekund", "sekunder"]),
        ("de", ONE, &["Minute", "Minuten"], &["Sekunde", "Sekunden"]),
        ("el", ONE, &["λεπτό", "λεπτά"], &["δευτερόλεπτο", "δευτερόλεπτα"]),
        ("en", ONE, &["minute", "minutes"], &["second", "seconds"]),
        ("es", ONE, &["minuto", "minutos"], &["segundo", "segundos"]),
        ("fi", NEVER, &["minuutin"], &["sekunnin"]),
        ("fr", ONE, &["minute", "minutes"], &["seconde", "secondes"]),
        ("hu", NEVER, &["perc"], &["másodperc"]),
        ("id", NEVER, &["menit"], &["detik"]),
        ("it", ONE, &["minuto", "minuti"], &["secondo", "secondi"]),
        ("ja", NEVER, &["分"], &["秒"]),
        ("ko", NEVER, &["분"], &["초"]),
        ("nb", ONE, &["minutt", "minutter"], &["sekund", "sekunder"]),
        ("nl", ONE, &["minuut", "minuten"], &["seconde", "seconden"]),
        ("pl", POLISH, &["minutę", "minuty", "minut"], &["sekundę", "sekundy", "sekund"]),
        ("pt", ONE, &["minuto", "minutos"], &["segundo", "segundos"]),
        ("ro", ROMANIAN, &["minut", "minute", "de minute"], &["secundă", "secunde", "de secunde"]),
        ("ru", EAST, &["минуту", "минуты", "минут"], &["секунду", "секунды", "секунд"]),
        ("sk", FEW, &["minútu", "minúty", "minút"], &["sekundu", "sekundy", "sekúnd"]),
        ("sv", ONE, &["minut", "minuter"], &["sekund", "sekunder"]),
        ("tr", NEVER, &["dakika"], &["saniye"]),
        ("uk", EAST, &["хвилину", "хвилини", "хвилин"], &["секунду", "секунди", "секунд"]),
        ("vi", NEVER, &["phút"], &["giây"]),
        ("zh", NEVER, &["分钟"], &["秒"]),
        ("zh-TW", NEVER, &["分鐘"], &["秒"]),
    ];
    for (code, which, minutes, seconds) in table {
        let expected = [minutes, seconds].map(|forms| which.map(|form| forms[form].to_owned()).to_vec());
        assert_eq!(forms(code), expected, "{code}: of {COUNTS:?}");
    }
    let codes: Vec<&str> = LANGUAGES.iter().map(|language| language.code).collect();
    assert_eq!(codes, table.map(|(code, ..)| code), "each language has a row");
}

#[test]
fn durations_join_hours_minutes_and_seconds_in_each_language() {
    let formatted = |code| [format(code, 5_400), format(code, 290), format(code, 7_200), format(code, 60)];
    assert_eq!(formatted("de"), ["1 Stunde 30 Minuten", "4 Minuten 50 Sekunden", "2 Stunden", "1 Minute"]);
    assert_eq!(formatted("nl"), ["1 uur 30 minuten", "4 minuten 50 seconden", "2 uur", "1 minuut"]);
    assert_eq!(formatted("pl"), ["1 godzinę 30 minut", "4 minuty 50 sekund", "2 godziny", "1 minutę"]);
    assert_eq!(formatted("ru"), ["1 час 30 минут", "4 минуты 50 секунд", "2 часа", "1 минуту"]);
    assert_eq!(formatted("ro"), ["1 oră 30 de minute", "4 minute 50 de secunde", "2 ore", "1 minut"]);
    assert_eq!(formatted("fi"), ["1 tunnin 30 minuutin", "4 minuutin 50 sekunnin", "2 tunnin", "1 minuutin"]);
    assert_eq!(formatted("ja"), ["1時間30分", "4分50秒", "2時間", "1分"]);
    assert_eq!(formatted("ko"), ["1시간 30분", "4분 50초", "2시간", "1분"]);
    assert_eq!(formatted("zh"), ["1小时30分钟", "4分钟50秒", "2小时", "1分钟"]);
}

#[test]
fn english_is_same_with_and_without_language_code() {
    for seconds in [1, 2, 30, 60, 61, 290, 300, 3_600, 5_400, 7_261] {
        assert_eq!(
            format("en", seconds),
            crate::announcement::format_duration(jiff::SignedDuration::from_secs(seconds))
        );
    }
}

#[test]
fn past_instant_is_shown_as_one_second() {
    assert_eq!(format("de", 0), "1 Sekunde");
    assert_eq!(format("fr", -3), "1 seconde");
}
