//! The arguments of a benchmark program.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tilewright_search::records::CacheState;
use tilewright_search::scheduler::Budget;

use super::Variant;

/// The options on the command line of a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Most measurements when tuning a kernel.
    pub trials: Option<usize>,
    /// Most time when tuning a kernel.
    pub time_limit: Option<Duration>,
    /// The budget for tuning all kernels together.
    pub budget: Option<Budget>,
    /// The seed of the search.
    pub seed: Option<u64>,
    /// Threads that kernels use.
    pub threads: Option<usize>,
    /// Where records are.
    pub records: Option<PathBuf>,
    /// Where the operands of measured runs are.
    pub cache: CacheState,
    /// Only cases whose title contains one of these.
    pub only: Vec<String>,
    /// Only compare, with the records that there are.
    pub no_tune: bool,
    /// One JSON object for each result instead of text for people.
    pub json: bool,
    /// Operators to run, by their names.
    pub ops: Vec<String>,
    /// Seeds of searches, where there are several.
    pub seeds: Vec<u64>,
    /// Numbers of trials to compare.
    pub quality: Vec<usize>,
    /// A file with times to reach.
    pub until: Option<PathBuf>,
    /// Variants to measure, by their names.
    pub variants: Vec<String>,
    /// Measure the reference however long it takes.
    pub reference: bool,
    /// The device to measure on, such as `gpu:0`, where it is not the CPU.
    pub device: Option<String>,
    /// The architecture to compile for instead of measuring, such as `sm_80`.
    pub target: Option<String>,
    /// Print the names of operators only.
    pub list: bool,
    /// Where compiled kernels are written.
    pub emit: Option<PathBuf>,
    /// Also write this many further schedules of each operator.
    pub candidates: Option<usize>,
    /// Whether there were any arguments; `cargo bench` gives some, `cargo test` starts benchmark programs without.
    pub is_given: bool,
}

/// The programs that a command line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Programs that [`bench_main!`](crate::bench_main) makes.
    Cases,
    /// Programs that name operators and seeds by themselves.
    Operators,
}

/// An option.
struct OptionRow {
    name: &'static str,
    /// A placeholder for its value, and what it has to be; `None` for an option without a value.
    value: Option<(&'static str, &'static str)>,
    help: &'static str,
    /// Whether only programs that name operators by themselves have it.
    is_of_operators: bool,
    /// Obeys it, given its value.
    apply: fn(&mut Options, &OptionRow, &str) -> Result<(), OptionsError>,
}

/// An option of every program.
const fn common(
    name: &'static str,
    value: Option<(&'static str, &'static str)>,
    help: &'static str,
    apply: fn(&mut Options, &OptionRow, &str) -> Result<(), OptionsError>,
) -> OptionRow {
    OptionRow { name, value, help, is_of_operators: false, apply }
}

/// An option of programs that name operators by themselves.
const fn of_operators(
    name: &'static str,
    value: Option<(&'static str, &'static str)>,
    help: &'static str,
    apply: fn(&mut Options, &OptionRow, &str) -> Result<(), OptionsError>,
) -> OptionRow {
    OptionRow { name, value, help, is_of_operators: true, apply }
}

/// Every option.
static OPTIONS: [OptionRow; 21] = [
    common(
        "--trials",
        Some(("N", NUMBER)),
        "most measurements when tuning a kernel",
        |options, row, value| {
            options.trials = Some(row.parsed(value)?);
            Ok(())
        },
    ),
    common(
        "--seconds",
        Some(("S", "seconds")),
        "most seconds when tuning a kernel",
        |options, row, value| {
            let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            options.time_limit = Some(seconds.ok_or_else(|| row.wrong(value))?);
            Ok(())
        },
    ),
    common(
        BUDGET,
        Some(("B", "measurements or time, such as 500, 90s or 10min")),
        "what tuning all of them may cost together, spent where it helps most: 500, 90s, 10min",
        |options, row, value| {
            options.budget = Some(row.parsed(value)?);
            Ok(())
        },
    ),
    common("--seed", Some(("N", NUMBER)), "the seed of the search", |options, row, value| {
        options.seed = Some(row.parsed(value)?);
        Ok(())
    }),
    common("--threads", Some(("N", NUMBER)), "threads that kernels use", |options, row, value| {
        options.threads = Some(row.parsed::<NonZeroUsize>(value)?.get());
        Ok(())
    }),
    common(
        "--cache",
        Some(("STATE", "cold or warm")),
        "where operands are when a measured run begins: warm (in the caches) or cold (evicted)",
        |options, row, value| {
            options.cache = row.parsed(value)?;
            Ok(())
        },
    ),
    common("--records", Some(("DIR", "a directory")), "where tuning records are", |options, _, value| {
        options.records = Some(PathBuf::from(value));
        Ok(())
    }),
    common(
        "--only",
        Some(("TEXT", "a text")),
        "only cases whose name contains TEXT; may be repeated",
        |options, _, value| {
            options.only.push(value.to_owned());
            Ok(())
        },
    ),
    common("--no-tune", None, "only compare, with the records that there are", |options, _, _| {
        options.no_tune = true;
        Ok(())
    }),
    common("--json", None, "one JSON object a line", |options, _, _| {
        options.json = true;
        Ok(())
    }),
    common(
        "--variants",
        Some(("A,B", "names of variants")),
        "which to measure, of reference, default, tuned",
        |options, _, value| {
            options.variants.extend(list(value));
            Ok(())
        },
    ),
    common("--reference", None, "measure the reference however long it takes", |options, _, _| {
        options.reference = true;
        Ok(())
    }),
    of_operators(
        "--ops",
        Some(("A,B", "names of operators")),
        "operators, such as GMM.0 or GMM:1x96x200x33",
        |options, _, value| {
            options.ops.extend(list(value));
            Ok(())
        },
    ),
    of_operators(
        "--seeds",
        Some(("1,2", "numbers between commas")),
        "seeds, for the benchmark `quality`",
        |options, row, value| {
            let seeds: Result<Vec<u64>, _> = list(value).map(|seed| row.parsed(&seed)).collect();
            options.seeds.extend(seeds?);
            Ok(())
        },
    ),
    of_operators(
        "--quality",
        Some(("64,1000", "numbers between commas")),
        "numbers of trials to compare, for the benchmark `quality`",
        |options, row, value| {
            let stages: Result<Vec<usize>, _> = list(value).map(|stage| row.parsed(&stage)).collect();
            options.quality.extend(stages?);
            Ok(())
        },
    ),
    of_operators(
        "--until",
        Some(("FILE", "a file")),
        "times to reach, a JSON object of nanoseconds by operator, for the benchmark `tuning`",
        |options, _, value| {
            options.until = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    of_operators(
        "--device",
        Some(("NAME", "the name of a device such as gpu:0")),
        "measure on a device: gpu:0, or gpu:mock for a simulated one; with --emit, compile for it",
        |options, _, value| {
            options.device = Some(value.to_owned());
            Ok(())
        },
    ),
    of_operators(
        "--target",
        Some(("GPU", "an architecture such as sm_80, or a product such as h100")),
        "compile for a GPU such as sm_80 or h100 instead of measuring, for the benchmark `operators`",
        |options, _, value| {
            options.target = Some(value.to_owned());
            Ok(())
        },
    ),
    of_operators(
        "--list",
        None,
        "print the names of the operators that --ops stands for, for the benchmark `operators`",
        |options, _, _| {
            options.list = true;
            Ok(())
        },
    ),
    of_operators(
        "--emit",
        Some(("DIR", "a directory")),
        "where --target writes NAME.ptx and NAME.json for each operator",
        |options, _, value| {
            options.emit = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    of_operators(
        "--candidates",
        Some(("N", NUMBER)),
        "with --emit: also write N points of each operator's design space, as NAME-1.ptx and so on",
        |options, row, value| {
            options.candidates = Some(row.parsed(value)?);
            Ok(())
        },
    ),
];

const BUDGET: &str = "--budget";
const NUMBER: &str = "a number";

impl OptionRow {
    /// The value as a number or the like.
    fn parsed<T: std::str::FromStr>(&self, value: &str) -> Result<T, OptionsError> {
        value.parse().map_err(|_| self.wrong(value))
    }

    fn wrong(&self, value: &str) -> OptionsError {
        self.needs(format!("`{value}`"))
    }

    fn needs(&self, found: String) -> OptionsError {
        let expected = self.value.map_or("no value", |(_, expected)| expected);
        OptionsError::Value { option: self.name.to_owned(), expected, found }
    }

    fn is_for(&self, audience: Audience) -> bool {
        audience == Audience::Operators || !self.is_of_operators
    }
}

/// The options of such programs, one a line.
pub fn usage(audience: Audience) -> String {
    let rows = OPTIONS.iter().filter(|row| row.is_for(audience));
    let lines = rows.map(|row| {
        let placeholder = row.value.map_or(String::new(), |(placeholder, _)| format!(" {placeholder}"));
        format!("\n  {:<17}  {}", format!("{}{placeholder}", row.name), row.help)
    });
    format!("options:{}", lines.collect::<String>())
}

/// An invalid argument, or the requested help text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// `--help`: the options.
    #[error("{0}")]
    Help(String),
    /// An option is unknown.
    #[error("unknown option `{option}`\n{usage}")]
    Unknown {
        /// The option.
        option: String,
        /// The options that there are.
        usage: String,
    },
    /// An option that only other programs have.
    #[error("`{0}` has no meaning here: this program tunes nothing; `--bench tuning` does")]
    Unfit(&'static str),
    /// An option's value is missing or invalid.
    #[error("`{option}` needs {expected}, found {found}")]
    Value {
        /// The option.
        option: String,
        /// The values that it takes.
        expected: &'static str,
        /// The value that was given.
        found: String,
    },
    /// No case has a name that contains a text.
    #[error("no case contains `{text}`; there are {known}")]
    NoCase {
        /// The text.
        text: String,
        /// The names of all cases.
        known: String,
    },
}

impl Options {
    /// Parses the arguments of this process.
    ///
    /// # Errors
    /// [`OptionsError`]
    pub fn from_environment(audience: Audience) -> Result<Self, OptionsError> {
        Self::parse(audience, std::env::args().skip(1))
    }

    /// Parses given arguments, without the program's name. A word that is no option selects cases, as `--only`.
    ///
    /// # Errors
    /// [`OptionsError`]
    pub fn parse(
        audience: Audience,
        arguments: impl IntoIterator<Item = String>,
    ) -> Result<Self, OptionsError> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            options.is_given = true;
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let row = OPTIONS.iter().find(|row| row.name == name && row.is_for(audience));
            match (row, name.as_str()) {
                (Some(row), _) => {
                    let mut value = inline;
                    if row.value.is_some() && value.is_none() {
                        value = arguments.next();
                    }
                    let mut value = match (value, row.value) {
                        (Some(value), Some(_)) => value,
                        (None, None) => String::new(),
                        (None, Some(_)) => return Err(row.needs("nothing".to_owned())),
                        (Some(value), None) => return Err(row.wrong(&value)),
                    };
                    // `10 min` are two words.
                    if row.name == BUDGET
                        && let Some(unit) = arguments.next_if(|word| Budget::is_unit(word))
                    {
                        value.push_str(&unit);
                    }
                    (row.apply)(&mut options, row, &value)?;
                }
                (None, "--help" | "-h") => return Err(OptionsError::Help(usage(audience))),
                // `cargo bench` adds this by itself.
                (None, "--bench") => {}
                (None, text) if text.starts_with('-') => {
                    return Err(OptionsError::Unknown { option: name, usage: usage(audience) });
                }
                (None, _) => options.only.push(name),
            }
        }
        Ok(options)
    }

    /// The requested variants.
    ///
    /// # Errors
    /// When a name is no variant.
    pub fn variants(&self) -> Result<Vec<Variant>, OptionsError> {
        let find = |name: &String| {
            let found = Variant::ALL.into_iter().find(|variant| variant.name() == name);
            found.ok_or_else(|| OptionsError::Value {
                option: "--variants".to_owned(),
                expected: "reference, default or tuned",
                found: format!("`{name}`"),
            })
        };
        self.variants.iter().map(find).collect()
    }

    /// For programs that tune nothing.
    ///
    /// # Errors
    /// When there is a budget.
    pub fn refuse_budget(&self) -> Result<(), OptionsError> {
        match self.budget {
            Some(_) => Err(OptionsError::Unfit("--budget")),
            None => Ok(()),
        }
    }

    /// Refuses texts that no case's title contains.
    ///
    /// # Errors
    /// [`OptionsError::NoCase`] for the first of them.
    pub fn check_selection(&self, titles: &[String]) -> Result<(), OptionsError> {
        let has_none = |text: &&String| !titles.iter().any(|title| title.contains(text.as_str()));
        match self.only.iter().find(has_none) {
            None => Ok(()),
            Some(text) => Err(OptionsError::NoCase { text: text.clone(), known: titles.join(", ") }),
        }
    }

    /// Whether the options select a case of this title.
    pub fn selects(&self, title: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| title.contains(text.as_str()))
    }
}

/// Names between commas.
pub fn list(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, OptionsError> {
        Options::parse(Audience::Operators, text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn programs_of_users_have_no_options_of_ours() {
        let parse = |text: &str| Options::parse(Audience::Cases, text.split_whitespace().map(str::to_owned));
        let help = parse("--help").unwrap_err().to_string();
        assert!(
            help.starts_with("options:\n  --trials N         most measurements when tuning a kernel\n"),
            "{help}"
        );
        for own in OPTIONS.iter().filter(|row| row.is_of_operators) {
            assert!(!help.contains(own.name), "{help}");
            assert!(parse(own.name).unwrap_err().to_string().starts_with("unknown option"), "{}", own.name);
            assert!(usage(Audience::Operators).contains(own.name));
        }
        assert_eq!(help.lines().count(), 1 + OPTIONS.iter().filter(|row| !row.is_of_operators).count());
    }

    #[test]
    fn a_budget_may_be_two_words() {
        let budget = |text| parse(text).unwrap().budget;
        let ten_minutes = Some(Budget::time(Duration::from_secs(600)));
        for text in ["--budget 10min", "--budget 10 min", "--budget=10 min"] {
            assert_eq!(budget(text), ten_minutes, "{text}");
        }
        let quoted = Options::parse(Audience::Cases, ["--budget".to_owned(), "10 min".to_owned()]);
        assert_eq!(quoted.unwrap().budget, ten_minutes);
        let options = parse("--budget 500 minimum").unwrap();
        assert_eq!((options.budget, options.only), (Some(Budget::trials(500)), vec!["minimum".to_owned()]));
    }

    #[test]
    fn caches_are_cold_or_warm() {
        assert_eq!(parse("--ops a").unwrap().cache, CacheState::Warm);
        assert_eq!(parse("--cache cold").unwrap().cache, CacheState::Cold);
        assert_eq!(parse("--cache=warm").unwrap().cache, CacheState::Warm);
        let error = parse("--cache lukewarm").unwrap_err().to_string();
        assert_eq!(error, "`--cache` needs cold or warm, found `lukewarm`");
    }

    #[test]
    fn a_selection_that_selects_nothing_is_an_error() {
        let titles = ["matmul[M=4]".to_owned(), "softmax[N=3]".to_owned()];
        assert_eq!(parse("mat soft").unwrap().check_selection(&titles), Ok(()));
        let error = parse("--only mat --only conv").unwrap().check_selection(&titles).unwrap_err();
        assert_eq!(error.to_string(), "no case contains `conv`; there are matmul[M=4], softmax[N=3]");
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let budget = parse("--budget 90s").unwrap().budget;
        assert_eq!(budget, Some(Budget::time(Duration::from_secs(90))));
        let options = parse("--bench --trials 8 --seconds=1.5 --ops GMM.0,C2D.0 --json matmul").unwrap();
        assert_eq!((options.trials, options.time_limit), (Some(8), Some(Duration::from_millis(1500))));
        assert_eq!(options.ops, ["GMM.0", "C2D.0"]);
        assert!(options.json && !options.no_tune && options.is_given);
        let emission = parse("--target sm_80 --emit=kernels").unwrap();
        assert_eq!((emission.target.as_deref(), emission.emit), (Some("sm_80"), Some("kernels".into())));
        assert_eq!(parse("--device gpu:0").unwrap().device.as_deref(), Some("gpu:0"));
        let own = parse("--seeds 1,2 --quality=64,1000 --until tvm.json").unwrap();
        assert_eq!((own.seeds, own.quality), (vec![1, 2], vec![64, 1000]));
        assert_eq!(own.until, Some(PathBuf::from("tvm.json")));
        assert!(!parse("").unwrap().is_given);
        assert!(options.selects("matmul[M=4]") && !options.selects("conv2d[N=1]"));
    }

    #[test]
    fn nonsense_is_named() {
        let message = |text| parse(text).unwrap_err().to_string();
        assert_eq!(message("--trials many"), "`--trials` needs a number, found `many`");
        assert_eq!(message("--seeds 1,x"), "`--seeds` needs numbers between commas, found `x`");
        assert_eq!(message("--threads 0"), "`--threads` needs a number, found `0`");
        let expected = "`--budget` needs measurements or time, such as 500, 90s or 10min, found `soon`";
        assert_eq!(message("--budget soon"), expected);
        assert_eq!(message("--records"), "`--records` needs a directory, found nothing");
        assert_eq!(message("--seconds -1"), "`--seconds` needs seconds, found `-1`");
        let unknown = parse("--variants default,fastest").unwrap().variants().unwrap_err();
        assert_eq!(unknown.to_string(), "`--variants` needs reference, default or tuned, found `fastest`");
        assert_eq!(parse("--variants tuned").unwrap().variants(), Ok(vec![Variant::Tuned]));
        let unfit = parse("--budget 90s").unwrap().refuse_budget().unwrap_err().to_string();
        assert!(unfit.starts_with("`--budget` has no meaning here"), "{unfit}");
        assert_eq!(parse("--trials 8").unwrap().refuse_budget(), Ok(()));
        assert_eq!(message("--json=yes"), "`--json` needs no value, found `yes`");
        assert!(message("--fast").starts_with("unknown option `--fast`\noptions:"));
    }
}
