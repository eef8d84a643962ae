fn two( {
