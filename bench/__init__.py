"""Speed next to what people would use instead. No part of the product: nothing in model/ or viz/ knows this folder."""
