//! The settings of the driver.

use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use tilewright_ptx_sim::Memory;

/// Devices and behaviour of the driver, read from words that white space separates.
///
/// | word | meaning |
/// |---|---|
/// | `device=sm_80,memory=64M,name=Small` | a device: its compute capability, and further properties if wanted; without any such word there is one of `sm_80` |
/// | `devices=0` | no device at all |
/// | `driver=12040` | the CUDA version that the driver reports, here 12.4 |
/// | `seeds=0,1,2` | the schedules with which the simulator executes each kernel |
/// | `report=FILE` | a line of JSON for each launch is appended to this file |
///
/// The properties of a device are `memory` (bytes, with `K`, `M` or `G`), `name`, `multiprocessors`, and `lose-after`: after so
/// many launches and copies the device is lost, as if it had fallen off the bus.
///
/// ```
/// use tilewright_mock_cuda::Settings;
///
/// let settings: Settings = "device=sm_80,memory=1M device=sm_90 driver=12040".parse()?;
/// assert_eq!(settings.devices.len(), 2);
/// assert_eq!(settings.devices[0].memory, 1 << 20);
/// # Ok::<(), tilewright_mock_cuda::SettingsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The devices in order.
    pub devices: Vec<DeviceSettings>,
    /// The CUDA version: 1000 times the major number and 10 times the minor one.
    pub driver: u32,
    /// The schedules with which the simulator executes each kernel.
    pub seeds: Vec<u64>,
    /// Where a line for each launch goes.
    pub report: Option<PathBuf>,
}

/// A device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSettings {
    /// Its name.
    pub name: String,
    /// Its compute capability: major and minor number.
    pub capability: (u32, u32),
    /// Bytes of device memory.
    pub memory: u64,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The number of launches and copies after which the device is lost.
    pub lose_after: Option<u64>,
}

/// Settings that have no meaning.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{} cannot be read: `{word}`: {problem}", super::VARIABLE)]
pub struct SettingsError {
    /// The word.
    pub word: String,
    /// The problem with it, and the correct form.
    pub problem: String,
}

impl Default for Settings {
    /// One device.
    fn default() -> Settings {
        Settings {
            devices: vec![DeviceSettings::default()],
            driver: 13_000,
            seeds: vec![0, 1, 2],
            report: None,
        }
    }
}

impl Default for DeviceSettings {
    /// A small device of compute capability 8.0.
    fn default() -> DeviceSettings {
        DeviceSettings {
            name: "Simulated GPU".to_owned(),
            capability: (8, 0),
            memory: 4 << 30,
            multiprocessors: 16,
            lose_after: None,
        }
    }
}

impl FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        let mut devices = Vec::new();
        for word in text.split_whitespace() {
            let wrong = |problem: String| SettingsError { word: word.to_owned(), problem };
            let (key, value) = word.split_once('=').ok_or_else(|| wrong("`key=value` is wanted".into()))?;
            match key {
                "device" => devices.push(value.parse().map_err(wrong)?),
                "devices" if value == "0" => settings.devices = Vec::new(),
                "driver" => settings.driver = number(value).map_err(wrong)?,
                "seeds" => {
                    let seeds: Result<_, _> = value.split(',').map(number).collect();
                    settings.seeds = seeds.map_err(wrong)?;
                }
                "report" => settings.report = Some(value.into()),
                _ => return Err(wrong("the keys are device, devices=0, driver, seeds and report".into())),
            }
        }
        if !devices.is_empty() {
            settings.devices = devices;
        }
        if settings.devices.len() > Memory::DEVICES as usize {
            let problem = format!("there are at most {} devices", Memory::DEVICES);
            return Err(SettingsError { word: "device".into(), problem });
        }
        Ok(settings)
    }
}

impl FromStr for DeviceSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceSettings, String> {
        let mut parts = text.split(',');
        let capability = parts.next().and_then(capability).ok_or("a device begins with one such as sm_80")?;
        let mut device = DeviceSettings { capability, ..DeviceSettings::default() };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "memory" => device.memory = size(value)?,
                "name" => device.name = value.to_owned(),
                "multiprocessors" => device.multiprocessors = number(value)?,
                "lose-after" => device.lose_after = Some(number(value)?),
                _ => return Err("properties are memory, name, multiprocessors and lose-after".into()),
            }
        }
        Ok(device)
    }
}

/// Reads the form `sm_80`.
pub(crate) fn capability(name: &str) -> Option<(u32, u32)> {
    let digits = name.strip_prefix("sm_")?;
    let number: u32 = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    Some((number / 10, number % 10))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number that fits"))
}

/// A number of bytes, with a unit if wanted.
fn size(text: &str) -> Result<u64, String> {
    let shift = match text.bytes().last() {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    number::<u64>(digits)?.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_which_devices_there_are() {
        let settings: Settings =
            "device=sm_90a,memory=2K,name=Big,multiprocessors=132,lose-after=3 seeds=5 report=/tmp/x"
                .parse()
                .expect("right");
        let device = DeviceSettings {
            name: "Big".into(),
            capability: (9, 0),
            memory: 2048,
            multiprocessors: 132,
            lose_after: Some(3),
        };
        assert_eq!(settings.devices, [device]);
        assert_eq!((settings.seeds, settings.report), (vec![5], Some("/tmp/x".into())));
        assert_eq!("".parse(), Ok(Settings::default()));
        assert_eq!("devices=0".parse::<Settings>().map(|settings| settings.devices.len()), Ok(0));
    }

    #[test]
    fn wrong_settings_are_errors_that_name_the_word() {
        let many = ["device=sm_80"; 17].join(" ");
        for wrong in
            ["x", "x=1", "device=80", "device=sm_80,memory=lots", "devices=3", "driver=-1", "seeds=", &many]
        {
            let error = wrong.parse::<Settings>().expect_err(wrong);
            assert!(wrong.starts_with(&error.word), "{error}");
        }
    }
}
