//! The arguments of a benchmark program.

use std::path::PathBuf;
use std::time::Duration;

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
    /// Whether there were any arguments; `cargo bench` gives some, `cargo test` starts benchmark programs without.
    pub is_given: bool,
}

/// The options of all benchmark programs.
pub const USAGE: &str = "options:
  --trials N       most measurements when tuning a kernel
  --seconds S      most seconds when tuning a kernel
  --budget B       what tuning all of them may cost together, spent where it helps most: 500, 90s, 10min
  --seed N         the seed of the search
  --threads N      threads that kernels use
  --records DIR    where tuning records are
  --only TEXT      only cases whose name contains TEXT; may be repeated
  --no-tune        only compare, with the records that there are
  --json           one JSON object a line
  --ops A,B        operators, such as GMM.0 or GMM:1x96x200x33
  --seeds 1,2      seeds, for the benchmark `quality`
  --quality 64,1000  numbers of trials to compare, for the benchmark `quality`
  --until FILE     times to reach, a JSON object of nanoseconds by operator, for the benchmark `tuning`
  --variants A,B   of reference, default, tuned
  --reference      measure the reference however long it takes";

/// An invalid argument, or the requested help text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// `--help`.
    #[error("{USAGE}")]
    Help,
    /// An option is unknown.
    #[error("unknown option `{0}`\n{USAGE}")]
    Unknown(String),
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
}

impl Options {
    /// Parses the arguments of this process.
    ///
    /// # Errors
    /// [`OptionsError`]
    pub fn from_environment() -> Result<Self, OptionsError> {
        Self::parse(std::env::args().skip(1))
    }

    /// Parses given arguments, without the program's name. A word that is no option selects cases, as `--only`.
    ///
    /// # Errors
    /// [`OptionsError`]
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, OptionsError> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            options.is_given = true;
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let mut value = |expected| {
                inline.clone().or_else(|| arguments.next()).ok_or_else(|| OptionsError::Value {
                    option: name.clone(),
                    expected,
                    found: "nothing".to_owned(),
                })
            };
            match name.as_str() {
                "--trials" => options.trials = Some(number(&name, &value("a number")?)?),
                "--seed" => options.seed = Some(number(&name, &value("a number")?)?),
                "--threads" => {
                    let threads: std::num::NonZeroUsize = number(&name, &value("a number")?)?;
                    options.threads = Some(threads.get());
                }
                "--seconds" => options.time_limit = Some(seconds(&name, &value("seconds")?)?),
                "--budget" => {
                    let expected = "measurements or time, such as 500, 90s or 10min";
                    let text = value(expected)?;
                    options.budget = Some(text.parse().map_err(|_| OptionsError::Value {
                        option: name.clone(),
                        expected,
                        found: format!("`{text}`"),
                    })?);
                }
                "--records" => options.records = Some(PathBuf::from(value("a directory")?)),
                "--only" => options.only.push(value("a text")?),
                "--ops" => options.ops.extend(list(&value("names of operators")?)),
                "--seeds" => options.seeds.extend(numbers::<u64>(&name, &value("numbers between commas")?)?),
                "--quality" => {
                    options.quality.extend(numbers::<usize>(&name, &value("numbers between commas")?)?)
                }
                "--until" => options.until = Some(PathBuf::from(value("a file")?)),
                "--variants" => options.variants.extend(list(&value("names of variants")?)),
                "--no-tune" => options.no_tune = true,
                "--json" => options.json = true,
                "--reference" => options.reference = true,
                "--help" | "-h" => return Err(OptionsError::Help),
                // `cargo bench` adds this by itself.
                "--bench" => {}
                text if text.starts_with('-') => return Err(OptionsError::Unknown(name)),
                _ => options.only.push(name),
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

    /// Whether the options select a case of this title.
    pub fn selects(&self, title: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| title.contains(text.as_str()))
    }
}

/// Names between commas.
pub fn list(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn numbers<T: std::str::FromStr>(option: &str, text: &str) -> Result<Vec<T>, OptionsError> {
    list(text).map(|text| number(option, &text)).collect()
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, OptionsError> {
    text.parse().map_err(|_| OptionsError::Value {
        option: option.to_owned(),
        expected: "a number",
        found: format!("`{text}`"),
    })
}

fn seconds(option: &str, text: &str) -> Result<Duration, OptionsError> {
    text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        OptionsError::Value { option: option.to_owned(), expected: "seconds", found: format!("`{text}`") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, OptionsError> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let budget = parse("--budget 90s").unwrap().budget;
        assert_eq!(budget, Some(Budget::time(Duration::from_secs(90))));
        let options = parse("--bench --trials 8 --seconds=1.5 --ops GMM.0,C2D.0 --json matmul").unwrap();
        assert_eq!((options.trials, options.time_limit), (Some(8), Some(Duration::from_millis(1500))));
        assert_eq!(options.ops, ["GMM.0", "C2D.0"]);
        assert!(options.json && !options.no_tune && options.is_given);
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
        assert_eq!(message("--seeds 1,x"), "`--seeds` needs a number, found `x`");
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
        assert!(message("--fast").starts_with("unknown option `--fast`\noptions:"));
    }
}
