//! Special registers.

/// A special register, or one component of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Lane,
    Warp,
    Warps,
    WarpSize,
    Processor,
    Processors,
    Grid,
    LaneMask(LaneMask),
    /// Bytes of shared memory that the launch asked for.
    DynamicShared,
    /// Bytes of shared memory, static and dynamic.
    TotalShared,
    /// Position of the block in its cluster: clusters have one block.
    ClusterZero,
    ClusterOne,
    /// Counts up with each instruction.
    Clock,
    /// The same, of 64 bits.
    Clock64,
    /// The upper half of those.
    ClockHigh,
    /// Nanoseconds.
    Timer,
    /// The lower half of those.
    TimerLow,
    /// The upper half of those.
    TimerHigh,
}

/// Which lanes a lane mask has, in comparison with its own lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum LaneMask {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Special {
    /// The special register of this name, which may have a component `x`, `y`, `z`.
    pub(crate) fn named(name: &str, component: Option<&str>) -> Option<Special> {
        let axis = match component {
            None => None,
            Some("x") => Some(0),
            Some("y") => Some(1),
            Some("z") => Some(2),
            Some(_) => return None,
        };
        if let Some(axis) = axis {
            return Some(match name {
                "%tid" => Special::Thread(axis),
                "%ntid" => Special::Threads(axis),
                "%ctaid" => Special::Block(axis),
                "%nctaid" => Special::Blocks(axis),
                "%clusterid" => Special::Block(axis),
                "%nclusterid" => Special::Blocks(axis),
                "%cluster_ctaid" => Special::ClusterZero,
                "%cluster_nctaid" => Special::ClusterOne,
                _ => return None,
            });
        }
        Some(match name {
            "%laneid" => Special::Lane,
            "%warpid" => Special::Warp,
            "%nwarpid" => Special::Warps,
            "WARP_SZ" => Special::WarpSize,
            "%smid" => Special::Processor,
            "%nsmid" => Special::Processors,
            "%gridid" => Special::Grid,
            "%lanemask_eq" => Special::LaneMask(LaneMask::Equal),
            "%lanemask_lt" => Special::LaneMask(LaneMask::Less),
            "%lanemask_le" => Special::LaneMask(LaneMask::LessOrEqual),
            "%lanemask_gt" => Special::LaneMask(LaneMask::Greater),
            "%lanemask_ge" => Special::LaneMask(LaneMask::GreaterOrEqual),
            "%dynamic_smem_size" => Special::DynamicShared,
            "%total_smem_size" => Special::TotalShared,
            "%cluster_ctarank" => Special::ClusterZero,
            "%cluster_nctarank" => Special::ClusterOne,
            "%clock" => Special::Clock,
            "%clock_hi" => Special::ClockHigh,
            "%clock64" => Special::Clock64,
            "%globaltimer" => Special::Timer,
            "%globaltimer_lo" => Special::TimerLow,
            "%globaltimer_hi" => Special::TimerHigh,
            _ => return None,
        })
    }

    /// Bits of its value.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Special::Clock64 | Special::Timer | Special::Grid => 64,
            _ => 32,
        }
    }

    /// Whether it changes while a thread runs.
    pub(crate) fn is_dynamic(self) -> bool {
        matches!(
            self,
            Special::Clock
                | Special::ClockHigh
                | Special::Clock64
                | Special::Timer
                | Special::TimerLow
                | Special::TimerHigh
        )
    }
}
