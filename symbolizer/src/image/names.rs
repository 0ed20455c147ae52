use crate::address::ImageAddress;
use crate::frame::{Frame, NameSource, NoName};

/// Something in an image that can name an address.
pub trait Names {
    /// Which source this is.
    fn source(&self) -> NameSource;

    /// Append the frames at `address`, innermost first.
    ///
    /// # Errors
    /// The reason why there is no name; `frames` is then as it was.
    fn frames(&self, address: ImageAddress, frames: &mut Vec<Frame>) -> Result<(), NoName>;
}
