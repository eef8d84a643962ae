fn one( {
