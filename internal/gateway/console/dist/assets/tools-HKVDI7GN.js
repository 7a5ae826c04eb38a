/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-2G4TV7FE.js";import"./chunk-RQODYQY3.js";import"./chunk-GKZVYUOD.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
