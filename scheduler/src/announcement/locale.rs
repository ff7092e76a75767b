//! Pure. Writes hours, minutes and seconds in other languages, in the plural form and grammatical case that each language needs.
//!
//! The case is the one that follows the language's word for `in`.

/// Which form of a word a number needs, where a language has several. The rules are those of Unicode's CLDR for whole numbers from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PluralRule {
    /// One form for all numbers.
    None,
    /// A form for 1, and one for all others.
    One,
    /// Forms for 1, for 2 to 4, and for all others (Czech, Slovak).
    Few,
    /// Forms for 1, for numbers that end in 2 to 4 but not in 12 to 14, and for all others (Polish).
    FewByEnding,
    /// Forms for numbers that end in 1 but not in 11, and for those that end in 2 to 4 but not in 12 to 14. A third form is for all others
    /// (Russian, Ukrainian).
    OneAndFewByEnding,
    /// Forms for 1, for numbers whose last two digits are 1 to 19, and for all others (Romanian).
    UpToNineteen,
}

impl PluralRule {
    /// The index of the form for this number. A language with fewer forms uses its last one.
    fn form(self, count: i64) -> usize {
        let ends_in_few = matches!(count % 10, 2..=4) && !matches!(count % 100, 12..=14);
        let (is_one, is_few) = match self {
            Self::None => (true, false),
            Self::One => (count == 1, false),
            Self::Few => (count == 1, matches!(count, 2..=4)),
            Self::FewByEnding => (count == 1, ends_in_few),
            Self::OneAndFewByEnding => (count % 10 == 1 && count % 100 != 11, ends_in_few),
            Self::UpToNineteen => (count == 1, matches!(count % 100, 1..=19)),
        };
        match (is_one, is_few) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }
}

/// A language and its words for units of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language {
    /// The code according to BCP 47, as users write it in `{in:de}`.
    pub code: &'static str,
    rule: PluralRule,
    hours: &'static [&'static str],
    minutes: &'static [&'static str],
    seconds: &'static [&'static str],
    /// The separators between a number and its word, and between one pair and the next.
    spaces: (&'static str, &'static str),
}

impl Language {
    /// The language with this code, or `None` if it is not supported.
    pub fn from_code(code: &str) -> Option<&'static Self> {
        LANGUAGES.iter().find(|language| language.code == code)
    }

    /// The duration in words. A duration below one second is written as one second.
    pub(super) fn format_duration(&self, seconds: i64) -> String {
        let seconds = seconds.max(1);
        let parts = [(seconds / 3600, self.hours), (seconds / 60 % 60, self.minutes), (seconds % 60, self.seconds)];
        let (inner, outer) = self.spaces;
        let text = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, forms)| {
            let form = forms.get(self.rule.form(count)).or(forms.last()).copied().unwrap_or_default();
            format!("{count}{inner}{form}")
        });
        text.collect::<Vec<_>>().join(outer)
    }
}

const SPACED: (&str, &str) = (" ", " ");

const fn language(
    code: &'static str,
    rule: PluralRule,
    hours: &'static [&'static str],
    minutes: &'static [&'static str],
    seconds: &'static [&'static str],
) -> Language {
    Language { code, rule, hours, minutes, seconds, spaces: SPACED }
}

const fn with_separators(language: Language, spaces: (&'static str, &'static str)) -> Language {
    Language { spaces, ..language }
}

/// All supported languages, sorted by code. The comment above each shows the words around the duration that its forms fit.
pub const LANGUAGES: [Language; 26] = [
    // za 5 minut
    language(
        "cs",
        PluralRule::Few,
        &["hodinu", "hodiny", "hodin"],
        &["minutu", "minuty", "minut"],
        &["sekundu", "sekundy", "sekund"],
    ),
    // om 5 minutter
    language("da", PluralRule::One, &["time", "timer"], &["minut", "minutter"], &["sekund", "sekunder"]),
    // in 5 Minuten
    language("de", PluralRule::One, &["Stunde", "Stunden"], &["Minute", "Minuten"], &["Sekunde", "Sekunden"]),
    // σε 5 λεπτά
    language("el", PluralRule::One, &["ώρα", "ώρες"], &["λεπτό", "λεπτά"], &["δευτερόλεπτο", "δευτερόλεπτα"]),
    // in 5 minutes
    language("en", PluralRule::One, &["hour", "hours"], &["minute", "minutes"], &["second", "seconds"]),
    // en 5 minutos
    language("es", PluralRule::One, &["hora", "horas"], &["minuto", "minutos"], &["segundo", "segundos"]),
    // 5 minuutin kuluttua
    language("fi", PluralRule::None, &["tunnin"], &["minuutin"], &["sekunnin"]),
    // dans 5 minutes
    language("fr", PluralRule::One, &["heure", "heures"], &["minute", "minutes"], &["seconde", "secondes"]),
    // 5 perc múlva
    language("hu", PluralRule::None, &["óra"], &["perc"], &["másodperc"]),
    // dalam 5 menit
    language("id", PluralRule::None, &["jam"], &["menit"], &["detik"]),
    // tra 5 minuti
    language("it", PluralRule::One, &["ora", "ore"], &["minuto", "minuti"], &["secondo", "secondi"]),
    // 5分後
    with_separators(language("ja", PluralRule::None, &["時間"], &["分"], &["秒"]), ("", "")),
    // 5분 후
    with_separators(language("ko", PluralRule::None, &["시간"], &["분"], &["초"]), ("", " ")),
    // om 5 minutter
    language("nb", PluralRule::One, &["time", "timer"], &["minutt", "minutter"], &["sekund", "sekunder"]),
    // over 5 minuten
    language("nl", PluralRule::One, &["uur"], &["minuut", "minuten"], &["seconde", "seconden"]),
    // za 5 minut
    language(
        "pl",
        PluralRule::FewByEnding,
        &["godzinę", "godziny", "godzin"],
        &["minutę", "minuty", "minut"],
        &["sekundę", "sekundy", "sekund"],
    ),
    // em 5 minutos
    language("pt", PluralRule::One, &["hora", "horas"], &["minuto", "minutos"], &["segundo", "segundos"]),
    // peste 5 minute
    language(
        "ro",
        PluralRule::UpToNineteen,
        &["oră", "ore", "de ore"],
        &["minut", "minute", "de minute"],
        &["secundă", "secunde", "de secunde"],
    ),
    // через 5 минут
    language(
        "ru",
        PluralRule::OneAndFewByEnding,
        &["час", "часа", "часов"],
        &["минуту", "минуты", "минут"],
        &["секунду", "секунды", "секунд"],
    ),
    // o 5 minút
    language(
        "sk",
        PluralRule::Few,
        &["hodinu", "hodiny", "hodín"],
        &["minútu", "minúty", "minút"],
        &["sekundu", "sekundy", "sekúnd"],
    ),
    // om 5 minuter
    language("sv", PluralRule::One, &["timme", "timmar"], &["minut", "minuter"], &["sekund", "sekunder"]),
    // 5 dakika sonra
    language("tr", PluralRule::None, &["saat"], &["dakika"], &["saniye"]),
    // через 5 хвилин
    language(
        "uk",
        PluralRule::OneAndFewByEnding,
        &["годину", "години", "годин"],
        &["хвилину", "хвилини", "хвилин"],
        &["секунду", "секунди", "секунд"],
    ),
    // trong 5 phút
    language("vi", PluralRule::None, &["giờ"], &["phút"], &["giây"]),
    // 5分钟后
    with_separators(language("zh", PluralRule::None, &["小时"], &["分钟"], &["秒"]), ("", "")),
    // 5分鐘後
    with_separators(language("zh-TW", PluralRule::None, &["小時"], &["分鐘"], &["秒"]), ("", "")),
];

#[cfg(test)]
mod tests;
