"""ImageNet and Tiny ImageNet, the image data of the paper."""
