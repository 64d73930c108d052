# `cmake --install build/release --prefix P` puts the binary into P/bin and what users start from into P/share/orrery.
if(TARGET orrery_binary)
  include(GNUInstallDirs)
  install(TARGETS orrery_binary RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/specs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery/specs)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
