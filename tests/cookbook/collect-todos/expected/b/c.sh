true # TODO handle spaces
