//! Setters of options: `Options::new().durability(Durability::Always).deed_bytes_max(1 << 20)`.

/// Define a setter for each field, named like the field. Fields after `optional` and `filled` are an `Option`. The
/// setter of an `optional` field takes a value or an `Option`; the setter of a `filled` field takes only a value, so
/// `text.parse()?` needs no type. The setter of an `into` field takes any value that converts.
macro_rules! setters {
    (
        $options:ident { $($field:ident: $kind:ty),* $(,)? }
        optional { $($maybe:ident: $inner:ty),* $(,)? }
        $(filled { $($full:ident: $within:ty),* $(,)? })?
        $(into { $($from:ident: $whole:ty),* $(,)? })?
    ) => {
        impl $options {
            $($crate::ground::setters::setters!(@one $options, $field, $kind, $field);)*
            $($crate::ground::setters::setters!(@one $options, $maybe, impl Into<Option<$inner>>, $maybe.into());)*
            $($($crate::ground::setters::setters!(@one $options, $full, $within, Some($full));)*)?
            $($($crate::ground::setters::setters!(@one $options, $from, impl Into<$whole>, $from.into());)*)?
        }
    };
    (@one $options:ident, $field:ident, $kind:ty, $value:expr) => {
        #[doc = concat!(
            "Set [`", stringify!($field), "`](", stringify!($options), "#structfield.",
            stringify!($field), ")."
        )]
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $value;
            self
        }
    };
}

pub(crate) use setters;
