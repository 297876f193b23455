//! Detection of bijective iterator maps.
