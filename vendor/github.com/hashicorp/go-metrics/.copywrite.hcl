# Copyright IBM Corp. 2013, 2026
// SPDX-License-Identifier: MIT

schema_version = 1

project {
  license        = "MIT"
  copyright_year = 2013
}
