// SPDX-License-Identifier: MIT
b();
