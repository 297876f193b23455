//! Lists of named things whose order matters, and that users change by name.

/// An element of a [`Chain`].
pub trait Named: Clone {
    /// The kind of thing, for messages.
    const KIND: &'static str;

    /// Its name, unique in a chain.
    fn name(&self) -> &'static str;
}

/// Named elements in order. Every method that changes a chain takes it and returns it, so that calls can be chained;
/// an unknown name is an error that lists the known names.
#[derive(Clone, Debug)]
pub struct Chain<T> {
    elements: Vec<T>,
}

/// Why a chain cannot be changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No element has the name.
    #[error("there is no {kind} `{name}`; there are {known}")]
    Unknown {
        /// The kind of thing that was looked for.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The name is taken.
    #[error("there is a {kind} `{name}` already; `instead_of` puts another in its place")]
    Duplicate {
        /// The kind of thing that was to be added.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Chain { elements: Vec::new() }
    }
}

impl<T> From<Vec<T>> for Chain<T> {
    fn from(elements: Vec<T>) -> Self {
        Chain { elements }
    }
}

impl<T> Chain<T> {
    /// No elements.
    pub fn new() -> Self {
        Self::default()
    }

    /// The elements in order.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// The elements themselves, in order.
    pub fn into_elements(self) -> Vec<T> {
        self.elements
    }
}

impl<T: Named> Chain<T> {
    /// The names in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.elements.iter().map(Named::name).collect()
    }

    /// Adds an element at the end.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn with(self, element: T) -> Result<Self, ChainError> {
        let last = self.elements.len();
        self.insert(last, element)
    }

    /// Inserts an element right before the named one.
    ///
    /// # Errors
    /// When there is no element of that name, or the new element's name is taken.
    pub fn before(self, name: &str, element: T) -> Result<Self, ChainError> {
        let place = self.place(name)?;
        self.insert(place, element)
    }

    /// Inserts an element right after the named one.
    ///
    /// # Errors
    /// As [`Chain::before`].
    pub fn after(self, name: &str, element: T) -> Result<Self, ChainError> {
        let place = self.place(name)?;
        self.insert(place + 1, element)
    }

    /// Replaces the named element.
    ///
    /// # Errors
    /// As [`Chain::before`]; the new element may have the name of the replaced one.
    pub fn instead_of(mut self, name: &str, element: T) -> Result<Self, ChainError> {
        let place = self.place(name)?;
        self.elements.remove(place);
        self.insert(place, element)
    }

    /// Removes the named element.
    ///
    /// # Errors
    /// When there is none.
    pub fn without(mut self, name: &str) -> Result<Self, ChainError> {
        let place = self.place(name)?;
        self.elements.remove(place);
        Ok(self)
    }

    /// Keeps the named elements alone, in the order that they had.
    ///
    /// # Errors
    /// When there is no element of one of the names.
    pub fn only(mut self, names: &[&str]) -> Result<Self, ChainError> {
        names.iter().try_for_each(|name| self.place(name).map(drop))?;
        self.elements.retain(|element| names.contains(&element.name()));
        Ok(self)
    }

    fn place(&self, name: &str) -> Result<usize, ChainError> {
        self.elements.iter().position(|element| element.name() == name).ok_or_else(|| {
            let known: Vec<String> =
                self.elements.iter().map(|element| format!("`{}`", element.name())).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ChainError::Unknown { kind: T::KIND, name: name.to_owned(), known }
        })
    }

    fn insert(mut self, place: usize, element: T) -> Result<Self, ChainError> {
        if self.elements.iter().any(|other| other.name() == element.name()) {
            return Err(ChainError::Duplicate { kind: T::KIND, name: element.name() });
        }
        self.elements.insert(place, element);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for &'static str {
        const KIND: &'static str = "letter";

        fn name(&self) -> &'static str {
            self
        }
    }

    fn letters() -> Chain<&'static str> {
        Chain::from(vec!["a", "b", "c"])
    }

    #[test]
    fn an_element_can_come_before_after_and_instead_of_another() {
        assert_eq!(letters().before("b", "x").unwrap().names(), ["a", "x", "b", "c"]);
        assert_eq!(letters().after("b", "x").unwrap().names(), ["a", "b", "x", "c"]);
        assert_eq!(letters().instead_of("b", "x").unwrap().names(), ["a", "x", "c"]);
        assert_eq!(letters().instead_of("b", "b").unwrap().names(), ["a", "b", "c"]);
        assert_eq!(letters().with("x").unwrap().names(), ["a", "b", "c", "x"]);
    }

    #[test]
    fn elements_can_be_left_out() {
        assert_eq!(letters().without("a").unwrap().names(), ["b", "c"]);
        assert_eq!(letters().only(&["c", "a"]).unwrap().names(), ["a", "c"]);
        assert!(letters().only(&[]).unwrap().names().is_empty());
    }

    #[test]
    fn unknown_and_taken_names_are_errors() {
        let unknown = "there is no letter `z`; there are `a`, `b`, `c`";
        let errors = [
            letters().before("z", "x"),
            letters().after("z", "x"),
            letters().instead_of("z", "x"),
            letters().without("z"),
            letters().only(&["a", "z"]),
        ];
        for error in errors {
            assert_eq!(error.unwrap_err().to_string(), unknown);
        }
        let none = Chain::<&'static str>::new().without("z").unwrap_err().to_string();
        assert_eq!(none, "there is no letter `z`; there are none");
        let taken = "there is a letter `c` already; `instead_of` puts another in its place";
        assert_eq!(letters().before("a", "c").unwrap_err().to_string(), taken);
        assert_eq!(letters().instead_of("a", "c").unwrap_err().to_string(), taken);
    }
}
